"""What the shop sells: fifty products, each in variants of two options."""

from __future__ import annotations

COLOURS = ("ivory", "charcoal", "teal", "crimson", "mustard", "navy", "olive")
SIZES = ("small", "medium", "large")
WOODS = ("oak", "walnut", "birch", "ash")
METALS = ("brass", "steel", "copper")
FABRICS = ("linen", "wool", "cotton", "velvet")
LENGTHS = ("1 m", "2 m", "5 m")
CAPACITIES = ("half litre", "one litre", "two litre")
SHAPES = ("round", "square", "oval")
PLUGS = ("mains powered", "battery powered", "solar powered")

PRODUCTS: dict[str, tuple[int, str, tuple[str, ...], str, tuple[str, ...]]] = {
    "desk lamp": (38, "colour", COLOURS, "power", PLUGS),
    "floor lamp": (95, "metal", METALS, "shade", FABRICS),
    "bedside table": (120, "wood", WOODS, "size", SIZES),
    "bookcase": (210, "wood", WOODS, "size", SIZES),
    "armchair": (340, "fabric", FABRICS, "colour", COLOURS),
    "footstool": (70, "fabric", FABRICS, "colour", COLOURS),
    "coffee table": (180, "wood", WOODS, "shape", SHAPES),
    "wall mirror": (85, "shape", SHAPES, "frame", METALS),
    "wall clock": (44, "shape", SHAPES, "power", PLUGS[:2]),
    "alarm clock": (26, "colour", COLOURS, "power", PLUGS[:2]),
    "throw blanket": (48, "fabric", FABRICS[:3], "colour", COLOURS),
    "cushion cover": (18, "fabric", FABRICS, "colour", COLOURS),
    "curtain pair": (65, "fabric", FABRICS, "colour", COLOURS),
    "door mat": (22, "size", SIZES, "colour", COLOURS),
    "hall rug": (140, "size", SIZES, "colour", COLOURS),
    "laundry basket": (35, "size", SIZES, "colour", COLOURS),
    "storage box": (16, "size", SIZES, "colour", COLOURS),
    "coat rack": (75, "wood", WOODS, "hooks", METALS),
    "shoe bench": (110, "wood", WOODS, "size", SIZES),
    "tea kettle": (42, "capacity", CAPACITIES, "metal", METALS),
    "coffee grinder": (58, "power", PLUGS[:2], "colour", COLOURS),
    "water carafe": (24, "capacity", CAPACITIES, "colour", COLOURS),
    "lunch flask": (28, "capacity", CAPACITIES, "colour", COLOURS),
    "frying pan": (52, "size", SIZES, "metal", METALS),
    "stock pot": (68, "size", SIZES, "metal", METALS),
    "bread bin": (36, "wood", WOODS, "colour", COLOURS),
    "chopping board": (27, "wood", WOODS, "shape", SHAPES),
    "salad bowl": (31, "wood", WOODS, "size", SIZES),
    "cake stand": (33, "shape", SHAPES, "metal", METALS),
    "spice rack": (40, "wood", WOODS, "size", SIZES),
    "apron": (21, "fabric", FABRICS[:3], "colour", COLOURS),
    "table runner": (29, "fabric", FABRICS[:3], "colour", COLOURS),
    "bath towel": (25, "size", SIZES, "colour", COLOURS),
    "bath robe": (62, "size", SIZES, "colour", COLOURS),
    "soap dish": (12, "shape", SHAPES, "colour", COLOURS),
    "shower caddy": (34, "metal", METALS, "size", SIZES),
    "garden chair": (88, "wood", WOODS, "colour", COLOURS),
    "plant pot": (19, "size", SIZES, "colour", COLOURS),
    "watering can": (30, "capacity", CAPACITIES, "metal", METALS),
    "string lights": (32, "length", LENGTHS, "power", PLUGS),
    "lantern": (37, "metal", METALS, "power", PLUGS),
    "extension lead": (15, "length", LENGTHS, "colour", COLOURS),
    "tool chest": (130, "size", SIZES, "colour", COLOURS),
    "step ladder": (98, "size", SIZES, "metal", METALS),
    "picture frame": (23, "wood", WOODS, "size", SIZES),
    "photo album": (34, "size", SIZES, "colour", COLOURS),
    "travel rucksack": (115, "size", SIZES, "colour", COLOURS),
    "garment bag": (45, "length", LENGTHS[:2], "colour", COLOURS),
    "umbrella stand": (54, "metal", METALS, "shape", SHAPES),
    "parasol": (49, "size", SIZES, "colour", COLOURS),
}
"""Name to usual price, first option and its values, second option and its values. No name is part of
another."""

CITIES = (
    "Brackwell", "Tarnmouth", "Eldersea", "Quarrington", "Mossgate", "Fernholt", "Ashcombe",
    "Redwick", "Larkhaven", "Stonebeck", "Wrenford", "Dunmere", "Hollowby", "Pikesworth",
)  # fmt: skip
STREETS = (
    "Alder Lane", "Mill Road", "Chapel Street", "Orchard Close", "Harbour Street", "Quarry Road",
    "Willow Close", "Station Road", "Bridge Lane", "Kiln Street", "Heron Close", "Cooper Lane",
)  # fmt: skip
FIRST_NAMES = (
    "Ada", "Bruno", "Clara", "Dario", "Edda", "Farid", "Greta", "Hamza", "Ines", "Jonas", "Kirsi",
    "Luca", "Mina", "Nils", "Olga", "Pavel", "Rosa", "Samir", "Tove", "Umar", "Vera", "Wanda",
    "Yusuf", "Zora",
)  # fmt: skip
LAST_NAMES = (
    "Arden", "Bexley", "Corvin", "Dahl", "Eklund", "Ferrow", "Grady", "Hale", "Irving", "Jansen",
    "Kessler", "Lindqvist", "Marlow", "Novak", "Okoro", "Pereira", "Quill", "Rasmus", "Sorel",
    "Tamsin", "Ulrich", "Varga", "Westby", "Yardley", "Zeller",
)  # fmt: skip
