"""A site of short posts."""

from __future__ import annotations

from typing import Any

from muarl.compat.bfcl.toolkit import Api, function, key_in, key_of, refused


class TwitterAPI(Api):
    """Posts, comments, reposts and followed users of one account.

    Upstream's default for the tags and the mentions of a post are lists that all such posts share; who
    mentions somebody in one, mentions her in all of them, and in those to come. Here all of one
    dialogue's, there all of a process's.
    """

    MODULE = "posting_api"

    @classmethod
    def begin(cls, config: Any, upstream: Any, *, long: bool) -> dict[str, Any]:
        state = super().begin(config, upstream, long=long)
        state["comments"] = {key_of(tweet): of for tweet, of in state["comments"].items()}
        return state | {"_shared_mentions": [], "_sharing": []}

    def _refused(self, doing: str) -> Any:
        return refused(f"User not authenticated. Please authenticate before {doing}.")

    def _unknown(self, tweet_id: Any) -> Any:
        return refused(f"Tweet with ID {tweet_id} not found.")

    @function()
    def authenticate_twitter(self, username: Any, password: Any) -> Any:
        right = username == self.state["username"] and password == self.state["password"]
        if right:
            self.state["authenticated"] = True
        return {"authentication_status": right}

    @function()
    def posting_get_login_status(self) -> Any:
        return {"login_status": bool(self.state["authenticated"])}

    @function()
    def post_tweet(self, content: Any, tags: Any = (), mentions: Any = ()) -> Any:
        if not self.state["authenticated"]:
            return self._refused("posting")
        tweet_id = self.state["tweet_counter"]
        if mentions == ():
            self.state["_sharing"].append(key_of(tweet_id))
            mentions = list(self.state["_shared_mentions"])
        tweet = {
            "id": tweet_id,
            "username": self.state["username"],
            "content": content,
            "tags": [] if tags == () else tags,
            "mentions": mentions,
        }
        self.state["tweets"][key_of(tweet_id)] = tweet
        self.state["tweet_counter"] += 1
        return tweet

    @function()
    def retweet(self, tweet_id: Any) -> Any:
        if not self.state["authenticated"]:
            return self._refused("retweeting")
        if key_in(self.state["tweets"], tweet_id) is None:
            return self._unknown(tweet_id)
        retweets = self.state["retweets"]
        own = retweets.setdefault(self.state["username"], [])
        if tweet_id in own:
            return {"retweet_status": "Already retweeted"}
        own.append(tweet_id)
        return {"retweet_status": "Successfully retweeted"}

    @function()
    def comment(self, tweet_id: Any, comment_content: Any) -> Any:
        if not self.state["authenticated"]:
            if self.version == "v3":  # upstream raises what cannot be raised
                raise TypeError("exceptions must derive from BaseException")
            return self._refused("commenting")
        if key_in(self.state["tweets"], tweet_id) is None:
            return self._unknown(tweet_id)
        said = {"username": self.state["username"], "content": comment_content}
        comments = self.state["comments"]
        key = key_in(comments, tweet_id)
        comments.setdefault(key_of(tweet_id) if key is None else key, []).append(said)
        return {"comment_status": "Comment added successfully"}

    @function()
    def mention(self, tweet_id: Any, mentioned_usernames: Any) -> Any:
        key = key_in(self.state["tweets"], tweet_id)
        if key is None:
            return self._unknown(tweet_id)
        mentions = self.state["tweets"][key]["mentions"]
        if key in self.state["_sharing"]:
            self.state["_shared_mentions"].extend(mentioned_usernames)
            for sharing in self.state["_sharing"]:
                self.state["tweets"][sharing]["mentions"].extend(mentioned_usernames)
        else:
            mentions.extend(mentioned_usernames)
        return {"mention_status": "Users mentioned successfully"}

    @function()
    def follow_user(self, username_to_follow: Any) -> Any:
        if not self.state["authenticated"]:
            return self._refused("following")
        if username_to_follow in self.state["following_list"]:
            return {"follow_status": False}
        self.state["following_list"].append(username_to_follow)
        return {"follow_status": True}

    @function()
    def list_all_following(self) -> Any:
        if not self.state["authenticated"]:
            return self._refused("listing following")
        following = self.state["following_list"]
        return following if self.version == "v3" else {"following_list": following}

    @function()
    def unfollow_user(self, username_to_unfollow: Any) -> Any:
        if not self.state["authenticated"]:
            return self._refused("unfollowing")
        if username_to_unfollow not in self.state["following_list"]:
            return {"unfollow_status": False}
        self.state["following_list"].remove(username_to_unfollow)
        return {"unfollow_status": True}

    @function()
    def get_tweet(self, tweet_id: Any) -> Any:
        key = key_in(self.state["tweets"], tweet_id)
        return self._unknown(tweet_id) if key is None else self.state["tweets"][key]

    @function()
    def get_user_tweets(self, username: Any) -> Any:
        return [tweet for tweet in self.state["tweets"].values() if tweet["username"] == username]

    @function()
    def search_tweets(self, keyword: Any) -> Any:
        return [
            tweet
            for tweet in self.state["tweets"].values()
            if keyword.lower() in tweet["content"].lower()
            or keyword.lower() in [tag.lower() for tag in tweet["tags"]]
        ]

    @function()
    def get_tweet_comments(self, tweet_id: Any) -> Any:
        if key_in(self.state["tweets"], tweet_id) is None:
            return self._unknown(tweet_id)
        key = key_in(self.state["comments"], tweet_id)
        return [] if key is None else self.state["comments"][key]

    @function()
    def get_user_stats(self, username: Any) -> Any:
        is_own = username == self.state["username"]
        return {
            "tweet_count": len(self.get_user_tweets(username)),
            "following_count": len(self.state["following_list"]) if is_own else 0,
            "retweet_count": len(self.state["retweets"].get(username, [])),
        }
