from hypothesis import given
from hypothesis import strategies as st

from muarl.compat.strictness import strict_diff, strictly_equal
from muarl.world import World, plain

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, 1.0, 2.5])
    | st.text(max_size=2)
)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.sampled_from(["a", "b", "c/d", "~"]), JSON, max_size=4)


def follow(value, items):
    """Apply a difference to plain JSON (an independent ten lines)."""
    value = plain(value)
    for item in sorted(items, key=lambda i: i["op"] == "remove"):
        keys = [k.replace("~1", "/").replace("~0", "~") for k in item["path"].split("/")[1:]]
        if not keys:
            return item["new"]
        at = value
        for key in keys[:-1]:
            at = at[int(key)] if isinstance(at, list) else at[key]
        last = int(keys[-1]) if isinstance(at, list) else keys[-1]
        if item["op"] == "remove":
            if isinstance(at, list):
                at[last] = "GONE"
            else:
                del at[last]
        elif isinstance(at, list) and last == len(at):
            at.append(item["new"])
        else:
            at[last] = item["new"]
    return without_gone(value)


def without_gone(value):
    if isinstance(value, dict):
        return {k: without_gone(v) for k, v in value.items()}
    if isinstance(value, list):
        return [without_gone(v) for v in value if v != "GONE"]
    return value


def test_an_integer_is_not_the_float_of_the_same_value():
    assert strict_diff({"a": [1, 2]}, {"a": [1.0]}) == [
        {"op": "replace", "path": "/a/0", "old": 1, "new": 1.0},
        {"op": "remove", "path": "/a/1", "old": 2},
    ]
    assert not strictly_equal({"a": True}, {"a": 1})


@given(DOCUMENTS, DOCUMENTS)
def test_a_difference_leads_from_one_document_to_the_other(left, right):
    assert repr(sorted_keys(follow(left, strict_diff(left, right)))) == repr(sorted_keys(right))


def sorted_keys(value):
    if isinstance(value, dict):
        return {k: sorted_keys(value[k]) for k in sorted(value)}
    return [sorted_keys(v) for v in value] if isinstance(value, list) else value


@given(DOCUMENTS, DOCUMENTS)
def test_forks_of_a_world_differ_as_their_plain_documents_do(base, later):
    world = World(base)
    before = world.fork()
    for key in list(world):
        if key not in later:
            del world[key]
    for key, value in later.items():
        world[key] = value
    assert strict_diff(before, world) == strict_diff(base, later)
