"""Text patterns: what a turn does, by its words alone (tier T0). English.

Each cue is a definition and a pattern for it. They were written from the definitions; how well they
find them in dialogues that they were not written from is `benchmarks/user_metrics.py`'s to say.

Texts are a model's, so they are hostile: the patterns have no nested repetition, and are matched
against at most `muarl.spoken.MAX_CHARS` characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from muarl.measure.words import plain, sentences
from muarl.spoken import QUESTION_MARKS

_FILLER = r"(?:(?:hi|hello|hey|so|and|but|ok|okay|oh|um|uh|well|also|then|please|sorry|no|yes),? )*"
_ACTIONS = (
    "cancel|return|change|get|have|book|order|exchange|speak|talk|borrow|renew|reserve|add|move|upgrade"
    "|send|make|place|use|see|schedule|reschedule|update|pay|remove|switch|rebook|extend|report|open"
)
_DEVICE = (
    "restarted|rebooted|turned|switched|unplugged|plugged|reset|clicked|logged|signed|toggled|enabled"
    "|disabled|updated|installed|uninstalled|reinstalled|checked|pressed|opened|closed|removed|inserted"
    "|reinserted|reseated|connected|disconnected|reconnected|ran|run|cleared|set|scanned|uploaded|filled"
    "|submitted|downloaded|tapped|selected|typed|entered|tried|replaced|tightened|held|moved"
)

USER: Mapping[str, str] = {
    # Agrees to what the agent proposed or asked to confirm.
    "affirm": (
        r"^(?:oh |ah |um |hm |well )?,?(?:yes|yep|yeah|yup|ya|sure|ok|okay|fine|correct|right|exactly"
        r"|absolutely|definitely|of course|go ahead|please do|do it|perfect|great|sounds good|confirmed"
        r"|i confirm|that's (?:right|correct|fine|ok|okay|it|good)|that works|that is (?:right|correct"
        r"|fine)|works for me|let's do (?:it|that)|all right|alright|good|agreed)(?!\w)(?! (?:but|so why"
        r"|what|who))"
    ),
    # Says that what the agent proposed or stated is not what she wants, or not so.
    "deny": (
        r"^(?:oh |ah |um |hm |well |sorry,? |wait,? )?(?:no|nope|nah|wrong|not (?:that|this|the|quite"
        r"|right|correct|exactly)|that's (?:wrong|not (?:right|correct|it|what|my|the))|that is (?:wrong"
        r"|not)|don't|do not|incorrect)(?!\w)"
        r"|(?:that's|that is|it's) (?:wrong|incorrect|not what i (?:said|asked|want|meant))"
        r"|i (?:said|meant|asked for)(?!\w)"
    ),
    # Takes back or replaces a wish or a value that she had put forward herself.
    "change": (
        r"changed my mind|change of plan|actually,? no(?!\w)|^rather (?!than)|on second thoughts?|scratch that|come to think of it"
        r"|(?:no,? |oh,? )?(?:wait|hold on|hang on),? (?!a (?:sec|moment|minute)|please (?:wait|hold|give|be|let)"
        r"|i'll|let me|i'm|while|the|what|why|how|did|is|are|do|you)(?=\w)|\w instead[.!]?$"
        r"|^(?:oh |hmm? |um |sorry,? )?actually,? (?:let's|make (?:it|that)|(?:can|could) (?:we|you|i)"
        r"|i(?:'d| would) (?:rather|prefer)|i want|cancel|forget|change|go with|i'll)(?!\w)"
        r"|^(?:oh |sorry,? )?no,? (?:rather|let's)(?!\w)"
        r"|forget (?:that|about that|the first|what i said)|instead of (?:that|the one i)"
        r"|never mind (?:that|the)|make (?:it|that) (?!clear|right|up|quick|work|happen)[^.?!]{1,40} instead"
        r"|(?:i'd|i would) rather (?!not)[^.?!]{1,60}(?: instead| after all| than)"
    ),
    # Will not tell or do what she was asked for, although she could.
    "refuse": (
        r"(?:i'd|i would|i) (?:really )?(?:rather|prefer) not|prefer not to"
        r"|i(?:'m| am) not (?:going to|gonna|comfortable|willing|giving|sharing|telling|handing)"
        r"|i (?:won't|will not|refuse to|don't want to|do not want to|don't feel like|don't wish to)"
        r" (?:give|share|say|tell|provide|hand|go into|reveal|discuss|disclose|answer|do that|send)"
        r"|none of your (?:business|concern)|i(?:'d| would) (?:like to )?keep (?:that|it) (?:private|to"
        r" myself)|(?:that's|that is) (?:private|personal)|not telling you|no way i(?:'m| am)"
    ),
    # Says that she does not know, remember or have what she was asked for.
    "unknown": (
        r"(?:don't|do not|didn't|doesn't) (?:really |actually |even |quite )?(?:know|remember|recall)(?!\w)"
        r"|no (?:idea|clue)|(?:i'm|i am|not) (?:really )?(?:not )?(?:sure|certain) (?:what|which|where|when"
        r"|about (?:the|that)|of (?:the|that))|(?:i'm|i am) not (?:sure|certain)(?:[,.]|$)"
        r"|^(?:hm+,? |um,? |sorry,? )?not (?:sure|certain)"
        r"|i(?:'ve| have)? forg[oe]t(?:ten)?(?!\w)(?! to)|can(?:'t|not) (?:remember|recall|find (?:it|that"
        r"|the|my|any))|(?:couldn't|could not) (?:say|tell you|find)|dunno|(?:haven't|have not) (?:got )?"
        r"(?:a |any )?(?:clue|idea)|(?:don't|do not) have (?:it|that|one|the|my|any|them)(?: \w+){0,4}?"
        r"(?: (?:handy|with me|on me|to hand|here|anymore|any more|number|anywhere))?(?=[.,;!]|$)"
        r"|i(?:'ve| have)? lost (?:it|the|my)(?: \w+)? ?(?:number|receipt|email|code|slip|card|letter)?(?=[.,;!]|$)"
    ),
    # Objects to a refusal, a statement or a proposal: argues, insists, complains, asks for an exception.
    "object": (
        r"^but(?!\w)|^seriously\?|(?:that's|that is|this is|it's) (?:really |so |just |completely |totally |simply )?(?:not "
        r"(?:fair|acceptable|ok|okay|good enough|true|possible|reasonable)|unfair|unacceptable|ridiculous"
        r"|absurd|outrageous|nonsense|insane|a joke|crazy|disappointing|frustrating)"
        r"|why (?:not|can't|won't|on earth)|there (?:must|has to|has got to) be|isn't there (?:any|some)(?:thing)?"
        r"|(?:can't|couldn't|won't) you (?:just |please |at least )?(?:make|do|check|try|bend|help|waive)"
        r"|come on|make an exception|(?:one|just this) (?:time|once) exception|just this once|reconsider"
        r"|i (?:insist|disagree|object|don't accept|can't accept|don't think that's|don't believe)"
        r"|(?:speak|talk) (?:to|with) (?:a |your |the |some)?(?:manager|supervisor|someone else|human|boss)"
        r"|escalate|file a complaint|i was (?:told|promised)|(?:your|the) (?:website|site|app|colleague|email"
        r"|ad)(?: \w+){0,2} (?:says|said|told|promised|states)|that can't be (?:right|true)|makes no sense"
        r"|are you (?:serious|kidding|joking|sure)|you (?:people|guys) (?:always|never)|not my fault"
    ),
    # Says that she does not understand the agent.
    "unclear": (
        r"(?:don't|do not|didn't) (?:quite |really )?(?:understand|follow|get (?:it|that|what))"
        r"|what do you mean|^(?:sorry|pardon|huh|what|excuse me|come again)\?+$|(?:i'm|i am) (?:confused|lost)"
        r"|could you (?:rephrase|repeat|say that again)|not following"
    ),
    # Courtesies: please, thanks, apologies, wishes put as questions.
    "polite": (
        r"(?<!\w)(?:please|pls|thank(?:s| you)|thx|appreciate|grateful|kindly|sorry|apologi[sz]e|apologies|pardon"
        r"|excuse me|if you don't mind|would you (?:please|mind|be so)|would it be possible|much obliged|cheers)(?!\w)"
        rf"|^{_FILLER}(?:could|may|might|would) (?:i|we|you)(?!\w)"
    ),
    # Gives thanks.
    "thanks": r"(?<!\w)(?:thank(?:s| you)|thx|cheers|appreciate (?:it|that|your)|much obliged)(?!\w)",
    # Takes leave, or says that this is all.
    "farewell": (
        r"(?<!\w)(?:bye|goodbye|that(?:'s| is| will be|'ll be) (?:all|everything|it)(?:[.,!]| for| i| thank|$)"
        r"|nothing else|have a (?:good|nice|great|lovely)|take care|see you|all set|i'm done|we're done)(?!\w)"
    ),
    # Claims to have carried out something herself, on a device, an account or a form.
    "claim": (
        rf"(?<!\w)i(?:'ve| have) (?:just |already |now |also )?(?:{_DEVICE})(?!\w)"
        rf"|(?<!\w)i (?:just |already |now )?(?:{_DEVICE}) (?:it|that|the|them|my|on|off|in|out|into|everything)(?!\w)"
        r"|^(?:ok(?:ay)?,? |alright,? |right,? )?(?:it's |that's |all )?done(?:[,.!]|$)|(?:just )?did (?:it|that|so)(?:[,.!]|$)"
    ),
    # Speaks as the agent: offers help, cites the company's rules, says it has looked something up or
    # carried it out, thanks for contacting, uses tool markup.
    "agent": (
        r"(?:how|what) (?:can|may|could) i (?:help|assist|do for) you|anything else i (?:can|could|may) (?:help|do|assist)"
        r"|(?:i'd|i would|i'll|i will|i'm|i am) (?:be )?(?:happy|glad|pleased) to (?:help|assist)(?! (?:if|me))"
        r"|(?:happy|glad) to (?:help|assist) you|i can (?:help|assist) you with"
        r"|let me (?:look|check|pull|bring) (?:that|it|this|up|your|into)(?!\w)(?! with my)"
        r"|i(?:'ve| have)? (?:just |now )?(?:looked up|located|found|pulled up|processed|issued|cancelled|updated|verified"
        r"|refunded|escalated) your|(?:our|company|store) (?:policy|policies|rules|terms) (?:is|are|does|do|state|say|allow|require)"
        r"|(?:per|under|according to) (?:our|company) (?:policy|policies|rules|terms)|as an (?:ai|assistant|agent)"
        r"|i(?:'m| am) (?:an? |the |your )?(?:virtual |customer |support |service |ai )+(?:assistant|agent|representative)"
        r"|your (?:order|account|request|refund|booking|reservation|ticket|claim|subscription) (?:has been|was successfully"
        r"|is now|will be)|thank you for (?:calling|contacting|reaching out|your patience|choosing|shopping)"
        r"|we (?:apologi[sz]e|do not offer|don't offer|can offer you)|(?:please|could you) (?:provide|share|confirm) your"
        r"|is there anything else (?:you|that you)|let me know if (?:you need|there is|there's) anything"
        r"|<(?:tool_call|function_call|tools?|function)\b|^\s*(?:assistant|agent|support) ?:"
    ),
}

AGENT: Mapping[str, str] = {
    # Asks for a yes before it does something, or whether what it says is right.
    "confirm": (
        r"(?:shall|should) (?:i|we)(?!\w)|(?:would you like|do you want|want|like) (?:me|us) to"
        r"|is (?:that|this|everything|it) (?:right|correct|ok|okay|all right|alright|fine)"
        r"|(?:do|can|could|would) you (?:please )?confirm(?! your)|please confirm(?! your)|confirm\?|(?:ok|okay|fine) to (?:proceed|go)"
        r"|may i (?:proceed|go|cancel|do)|go ahead\?|proceed\?|reply (?:with )?[\"']?yes|(?:right|correct|ok|okay)\?$|does (?:that|this) (?:work|sound|look)"
        r"|sound good\?|are you (?:happy|ok|okay) (?:with|for me|to)"
    ),
    # Refuses, or says that something cannot be done.
    "refuse": (
        r"(?<!if you )(?<!if i )(?<!you )(?:cannot|can't|can not|am unable|are unable|is unable|i'm unable|we're unable|not able to"
        r"|isn't able)(?!\w)(?! (?:find your|see your|wait|thank|guess|imagine|hear))"
        r"|(?:is|are|it's|that's|was) (?:not|no longer) (?:possible|allowed|eligible|permitted|something (?:i|we) can|available to)"
        r"|isn't (?:possible|allowed|eligible|permitted)|aren't (?:possible|allowed|eligible|permitted)|won't be able"
        r"|against (?:our|the|company) (?:policy|policies|rules)|(?:policy|rules) (?:does not|do not|doesn't|don't) (?:allow|permit)"
        r"|(?:we|i) (?:don't|do not) (?:offer|allow|accept|make exceptions)|must (?:decline|refuse)|not eligible"
    ),
    # Says that what was wanted is done.
    "done": (
        r"(?:has|have) (?:now |just |already |successfully |all )?been \w+(?:ed|en|ent|ade|old|it|ought)(?!\w)"
        r"|(?<!\w)(?:i've|i have|we've|we have) (?:now |just |successfully |gone ahead and |also )*(?:sent|put|set up|made|reset"
        r"|(?!checked|noticed|received|looked|asked|located|verified|reviewed|tried|noted|attached|need)\w+ed)(?!\w)"
        r"|^(?:ok(?:ay)?,? |all |great,? |right,? )?(?:done|all set)(?!\w)|(?:that's|that is|it's|it is|you're|you are) (?:all |now )?"
        r"(?:done|set|booked|cancelled|canceled|confirmed|sorted)(?!\w)|successfully"
        r"|is now (?:cancelled|canceled|booked|confirmed|active|closed|set|renewed|on its way|\w+ed)(?!\w)"
    ),
    # Asks whether there is more to do.
    "offer": (
        r"anything else|any other (?:questions?|concerns?|requests?)|something else i can|else (?:can|may) i (?:help|do)"
        r"|further (?:assistance|questions)"
    ),
    # Gives up: hands the user over to somebody else.
    "transfer": (
        r"(?:transfer|hand|connect|put|pass)(?:ring|ing|red)? (?:you|your \w+) (?:over |through |on )?(?:to|with)"
    ),
}

# A request for the user to tell something, where it is put without a question mark.
_REQUEST = re.compile(
    rf"^{_FILLER}(?:what|which|where|when|who|whose)(?:'s| is| are| was| were) (?:your|the|you)(?!\w)"
    r"|(?:please|kindly) (?:provide|tell|give|share|send|confirm your|let me (?:know|have)|verify|enter|spell|type|state)"
    r"|(?<!\w)i(?:'ll| will| just|'d)? (?:also )?need (?:your|the|to know)(?!\w)"
)
# A question that yes or no answers asks for no value, unless it asks whether she has it.
_YES_OR_NO = re.compile(
    rf"^{_FILLER}(?:do|does|did|is|are|was|were|has|have|will|would|should)(?!\w)"
    r"(?! you (?:know|have|remember|recall|tell|give|share))"
)
_ACT_REQUEST = re.compile(
    rf"^{_FILLER}(?:can|could|would|will) (?:you|somebody|someone)(?! (?:please )?(?:tell|explain|clarify|say|let me know"
    r"|give me (?:more|the|a)|remind|describe|check (?:if|whether|what|when|how)|see (?:if|whether)|confirm"
    r"|repeat|rephrase))(?!\w* (?:need|want|require|charge))"
    rf"|^{_FILLER}(?:may|can|could) (?:i|we) (?:please |just |also )?(?:{_ACTIONS})(?!\w)"
    r"(?!.*(?:without|even (?:if|though)|still|or (?:do|is|will)|if i))"
    rf"|^{_FILLER}would (?:it be possible|you mind)|^{_FILLER}is it possible to (?:{_ACTIONS})"
    rf"|^{_FILLER}(?:i(?:'d| would) like|i want|i need) "
)
_QUESTION_START = re.compile(
    rf"^{_FILLER}(?:what|which|when|where|who|whose|why|how|is there|are there|do i|does it|did you|will it|will i|is it|is that)(?!\w)"
    r"(?! (?:i|you|we|it) (?:want|wanted|mean|meant|need|needed)(?!\w))"
)
# Objections and complaints put as questions ask for nothing.
_NO_QUESTION = re.compile(
    r"are you (?:serious|kidding|joking)|what do you mean|why (?:not|can't|won't|on earth)|(?:can't|couldn't|won't) you"
    r"|isn't there|come on|^(?:sorry|pardon|huh|what|excuse me|seriously|really|right|ok|okay|hello)\?+$"
)


def _compiled(patterns: Mapping[str, str]) -> dict[str, re.Pattern[str]]:
    return {cue: re.compile(pattern) for cue, pattern in patterns.items()}


_USER, _AGENT = _compiled(USER), _compiled(AGENT)


def user_cues(text: str) -> frozenset[str]:
    """What a user's turn may do, taken by itself: cues of `USER`, and `ask` where she asks something.

    Example:
        >>> sorted(user_cues("Yes please. What does the blue one cost?"))
        ['affirm', 'ask', 'polite']
    """
    said = _sentences(text)
    found = {cue for cue, pattern in _USER.items() if any(map(pattern.search, said))}
    if any(map(_asks, said)):
        found.add("ask")
    if "agent" in found:  # an agent's question is none of hers
        found.discard("ask")
    return frozenset(found)


def in_answer(cues: frozenset[str], heard: frozenset[str] | None) -> frozenset[str]:
    """A user's cues as an answer to what the agent did; None: she speaks first.

    Of "great" and "no idea" only the question tells whether they agree or deny. She agrees to a proposal
    or a refusal and to nothing else; what she does not know or will not tell is what she was asked for;
    thanks close, unless they go with an answer that is still needed.

    Example:
        >>> sorted(in_answer(user_cues("Great, thanks."), agent_cues("Your order has been sent.")))
        ['close', 'polite']
        >>> sorted(in_answer(user_cues("Great, thanks."), agent_cues("Shall I send it?")))
        ['affirm', 'polite']
    """
    found = set(cues)
    if heard is None:
        return frozenset(
            found - {"affirm", "deny", "unknown", "refuse", "change", "thanks", "farewell"}
        )
    needed = heard & {"ask", "confirm"}
    if "farewell" in found or ("thanks" in found and not needed):
        found.add("close")
        found.discard("deny")  # "no, that is all" denies nothing
    if not needed:
        found -= {"unknown", "refuse"}
    if found & {"change", "refuse", "unknown"}:
        found -= {"affirm", "deny"}
    if "deny" in found or not heard & {"confirm", "refuse", "false"}:
        found.discard("affirm")
    return frozenset(found - {"thanks", "farewell"})


def agent_cues(text: str) -> frozenset[str]:
    """What an agent's message does: cues of `AGENT`, and `ask` where it asks for something.

    Example:
        >>> sorted(agent_cues("I'm sorry, I can't do that. Anything else?"))
        ['offer', 'refuse']
    """
    said = _sentences(text)
    found = {cue for cue, pattern in _AGENT.items() if any(map(pattern.search, said))}
    if requests(text):
        found.add("ask")
    return frozenset(found)


def requests(text: str) -> list[str]:
    """Sentences in which an agent asks to be told something; not for a yes, not whether there is more."""
    found = []
    for sentence in _sentences(text):
        asks = sentence.endswith(QUESTION_MARKS) or _REQUEST.search(sentence)
        if asks and not _AGENT["confirm"].search(sentence) and not _AGENT["offer"].search(sentence):
            found.append(sentence)
    return found


def asks_for_value(sentence: str) -> bool:
    """Whether a request is for a value, and not for a yes or a no.

    Example:
        >>> asks_for_value("does the roof face south?"), asks_for_value("do you have your card number?")
        (False, True)
    """
    return not _YES_OR_NO.search(sentence)


def _sentences(text: str) -> list[str]:
    """What patterns are matched against: one by one, so that `^` is the beginning of any of them."""
    return [plain(sentence) for sentence in sentences(text)]


def _asks(sentence: str) -> bool:
    if _NO_QUESTION.search(sentence) or _ACT_REQUEST.search(sentence):
        return False
    return sentence.endswith(QUESTION_MARKS) or bool(_QUESTION_START.search(sentence))
