"""Words that only join sentences change no verdict: "First, …", "Außerdem …", "De plus, …", "Sin embargo, …"."""

from __future__ import annotations

import pytest

from answer.samples import passage
from recollect.answer.statements import StatementStream
from recollect.answer.verification import Verifier

CONNECTIVES = {
    "en": "First, Second, Third, Firstly, Secondly, Finally, Lastly, Next, Then, Also, Additionally, In addition, "
    "Furthermore, Moreover, Besides, However, Nevertheless, On the other hand, In contrast, Therefore, Thus, Hence, "
    "Consequently, As a result, For example, In particular, In fact, In other words, In short, Overall,",
    "de": "Erstens, Zweitens, Drittens, Zunächst, Zuerst, Schließlich, Zuletzt, Außerdem, Zudem, Ferner, Des Weiteren, "
    "Darüber hinaus, Dann, Danach, Jedoch, Allerdings, Dennoch, Trotzdem, Einerseits, Andererseits, Dagegen, Daher, "
    "Deshalb, Somit, Folglich, Zum Beispiel, Insbesondere, Kurz gesagt, Zusammenfassend, Insgesamt,",
    "fr": "Premièrement, Deuxièmement, Troisièmement, D'abord, D’abord, Tout d'abord, En premier lieu, Ensuite, Puis, "
    "Enfin, Finalement, De plus, En outre, Par ailleurs, Également, Cependant, Toutefois, Néanmoins, Pourtant, "
    "D'une part, D'autre part, En revanche, Donc, Ainsi, Par conséquent, Par exemple, En particulier, En effet, "
    "Autrement dit, En résumé,",
    "es": "Primero, Segundo, Tercero, En primer lugar, En segundo lugar, Luego, Después, A continuación, Finalmente, "
    "Por último, Además, Asimismo, También, Por otra parte, Por otro lado, Por un lado, Sin embargo, No obstante, "
    "En cambio, Por lo tanto, Por tanto, Por consiguiente, En consecuencia, Así pues, Por ejemplo, En particular, "
    "De hecho, Es decir, En otras palabras, En resumen,",
}
#: By language: two sources, and of each a sentence as it is said behind a connective, and one that is altered.
SAID = {
    "en": [
        ("The canteen opens at 11:30. Lunch costs EUR 6.", "Lunch costs EUR 6", "Lunch costs EUR 7"),
        (
            "Employees on a fixed-term contract accrue leave from the first day. Ada Byron wrote to Charles Babbage.",
            "employees on a fixed-term contract accrue leave from the first day",
            "Charles Darwin wrote to Ada Byron",
        ),
        ("The door must be locked at night.", "the door must be locked at night", "the door must not be locked"),
    ],
    "de": [
        ("Die Kantine öffnet um 11:30 Uhr.", "die Kantine öffnet um 11:30 Uhr", "die Kantine öffnet um 12:30 Uhr"),
        ("Die Probezeit dauert sechs Monate.", "die Probezeit dauert sechs Monate", "die Probezeit dauert drei Monate"),
        ("Die Tür ist nachts verschlossen.", "die Tür ist nachts verschlossen", "die Tür ist nicht verschlossen"),
    ],
    "fr": [
        ("La cantine ouvre à 11 h 30.", "la cantine ouvre à 11 h 30", "la cantine ouvre à 12 h 30"),
        ("Le délai est de vingt-cinq jours.", "le délai est de vingt-cinq jours", "le délai est de 35 jours"),
        ("La porte est fermée la nuit.", "la porte est fermée la nuit", "la porte n'est pas fermée la nuit"),
    ],
    "es": [
        ("El comedor abre a las 11:30.", "el comedor abre a las 11:30", "el comedor abre a las 12:30"),
        ("El plazo es de treinta y cinco días.", "el plazo es de treinta y cinco días", "el plazo es de 25 días"),
        ("La puerta se cierra de noche.", "la puerta se cierra de noche", "la puerta no se cierra de noche"),
    ],
}  # fmt: skip


def reasons(text, verifier, language):
    stream = StatementStream(language)
    return [verifier.check(statement).reason for statement in [*stream.feed(text), *stream.flush()]]


@pytest.mark.parametrize("language", list(CONNECTIVES))
def test_no_connective_changes_a_verdict(language):
    words = [word.strip() for word in CONNECTIVES[language].split(",") if word.strip()]
    assert len(set(words)) == 30
    shown = [passage(text, document_id=at, source=f"{at}.txt") for at, (text, *_) in enumerate(SAID[language], start=1)]
    verifier = Verifier(shown, language=language)
    for at, (_, said, altered) in enumerate(SAID[language], start=1):
        for word in words:
            for joined in (f"{word}, {said} [{at}].", f"**{word}**: {said} [{at}]."):
                assert reasons(joined, verifier, language) == [None], joined
            assert reasons(f"{word}, {altered} [{at}].", verifier, language)[0], (word, altered)
            # Another source than the one that says it.
            assert reasons(f"{word}, {said} [{at % 3 + 1}].", verifier, language)[0], word


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("First of all, Porto is where the offices are [1].", True),
        ("And second: please ask the desk.", False),
        ("Además, no tengo información.", False),
        ("However, the provided documents do not mention dental care.", False),
        ("Besides, Porto is where the offices are [1].", True),
        ("Besides, Lyon is where the offices are [1].", False),
    ],
)
def test_what_is_behind_a_connective_is_read_as_before(text, reason):
    shown = [passage("The offices are in Lyon. Second class tickets are paid for. Meals are free.")]
    verifier = Verifier(shown)
    assert bool(reasons(text, verifier, "en")[0]) is reason
