"""Where the airline flies, and what travellers are called."""

from __future__ import annotations

TRAIN_AIRPORTS = {
    "ALV": "Alvstad", "BRN": "Bernholt", "CAX": "Caxmouth", "DRO": "Drommen", "EBL": "Eblingen",
    "FOR": "Forthaven", "GYN": "Gynvik", "HAZ": "Hazelport", "IVM": "Ivermoor", "JUT": "Jutberg",
    "KEP": "Keppelsund", "LOM": "Lomeval", "MIR": "Mirabay", "NOV": "Novarra",
}  # fmt: skip
HELD_OUT_AIRPORTS = {
    "OST": "Ostvik", "PEL": "Pelworth", "QUI": "Quillan Bay", "RHO": "Rhodenau",
    "SAL": "Salterfoot", "TYN": "Tynhaven",
}  # fmt: skip
AIRPORTS_OF = {"train": TRAIN_AIRPORTS, "held_out": HELD_OUT_AIRPORTS}
"""Code to city. Those of one split are never flown to from those of the other."""

FIRST_NAMES = (
    "Amara", "Bela", "Cosmo", "Delia", "Emil", "Fenja", "Gideon", "Hilde", "Ivo", "Jorun", "Kasper",
    "Leona", "Matteo", "Nadia", "Orson", "Petra", "Quentin", "Runa", "Silas", "Talia", "Ulla",
    "Viktor", "Wenke", "Xaver", "Ylva", "Zeno",
)  # fmt: skip
LAST_NAMES = (
    "Abelson", "Brandt", "Castell", "Dorn", "Ekman", "Falk", "Gant", "Holm", "Iversen", "Jarvi",
    "Keller", "Lund", "Moreau", "Nyberg", "Oxley", "Prior", "Quist", "Roth", "Stroud", "Thorne",
    "Ulvang", "Voss", "Wilder", "Yates", "Ziegler",
)  # fmt: skip
