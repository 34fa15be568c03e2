"""Structures of well-known label sets, ready to use."""

import json
from importlib import resources

from structent.structure.circular import circular
from structent.structure.graph import LabelGraph
from structent.structure.hierarchy import hierarchy
from structent.structure.random_partition import RandomPartition

# The paper's three appendix tables; classes and superclasses are spelt as in the data set.
_CIFAR100_CLASSES = {
    "aquatic_mammals": "beaver dolphin otter seal whale",
    "fish": "aquarium_fish flatfish ray shark trout",
    "flowers": "orchid poppy rose sunflower tulip",
    "food_containers": "bottle bowl can cup plate",
    "fruit_and_vegetables": "apple mushroom orange pear sweet_pepper",
    "household_electrical_devices": "clock keyboard lamp telephone television",
    "household_furniture": "bed chair couch table wardrobe",
    "insects": "bee beetle butterfly caterpillar cockroach",
    "large_carnivores": "bear leopard lion tiger wolf",
    "large_man-made_outdoor_things": "bridge castle house road skyscraper",
    "large_natural_outdoor_scenes": "cloud forest mountain plain sea",
    "large_omnivores_and_herbivores": "camel cattle chimpanzee elephant kangaroo",
    "medium_mammals": "fox porcupine possum raccoon skunk",
    "non-insect_invertebrates": "crab lobster snail spider worm",
    "people": "baby boy girl man woman",
    "reptiles": "crocodile dinosaur lizard snake turtle",
    "small_mammals": "hamster mouse rabbit shrew squirrel",
    "trees": "maple_tree oak_tree palm_tree pine_tree willow_tree",
    "vehicles_1": "bicycle bus motorcycle pickup_truck train",
    "vehicles_2": "lawn_mower rocket streetcar tank tractor",
}
_CIFAR100_CATEGORY = {
    "aquatic_mammals": "animals-water",
    "fish": "animals-water",
    "flowers": "plants",
    "food_containers": "objects-other",
    "fruit_and_vegetables": "plants",
    "household_electrical_devices": "objects-other",
    "household_furniture": "objects-other",
    "insects": "animals-other",
    "large_carnivores": "animals-mammals",
    "large_man-made_outdoor_things": "landscape",
    "large_natural_outdoor_scenes": "landscape",
    "large_omnivores_and_herbivores": "animals-mammals",
    "medium_mammals": "animals-mammals",
    "non-insect_invertebrates": "animals-other",
    "people": "animals-human",
    "reptiles": "animals-other",
    "small_mammals": "animals-mammals",
    "trees": "plants",
    "vehicles_1": "objects-vehicle",
    "vehicles_2": "objects-vehicle",
}
_CIFAR100_SUPERCATEGORY = {
    "animals-water": "animals",
    "animals-mammals": "animals",
    "animals-human": "animals",
    "animals-other": "animals",
    "plants": "plants",
    "objects-vehicle": "objects",
    "objects-other": "objects",
    "landscape": "landscape",
}


def cifar100() -> RandomPartition:
    """Return the paper's hierarchy of CIFAR-100: 4, 8, 20 and 100 blocks, .25 each.

    The classes are in the data set's own order, so that its integer labels are indices.

    Examples
    --------
    >>> print(cifar100())
    100 classes: apple, aquarium_fish, baby, bear, beaver, bed, bee, beetle, bicy...
    weight  blocks  level          blocks, largest first
    0.2500       4  supercategory  animals (50), objects (25), plants (15), lands...
    0.2500       8  category       animals-mammals (20), plants (15), objects-oth...
    0.2500      20  superclass     fruit_and_vegetables (5), fish (5), people (5)...
    0.2500     100  class          every class by itself
    """
    superclass_of = {
        label: superclass
        for superclass, labels in _CIFAR100_CLASSES.items()
        for label in labels.split()
    }
    paths = {}
    for label, superclass in sorted(superclass_of.items()):
        category = _CIFAR100_CATEGORY[superclass]
        paths[label] = (_CIFAR100_SUPERCATEGORY[category], category, superclass)
    return hierarchy(paths, level_names=["supercategory", "category", "superclass"])


def months(width: int = 3, singleton_weight: float = 0.3) -> RandomPartition:
    """Return the paper's circular structure of the months, numbered 1 to 12.

    Examples
    --------
    >>> print(months())
    12 classes: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
    weight  blocks  level    blocks, largest first
    0.2333       4  width 3  1..3 (3), 4..6 (3), 7..9 (3), 10..12 (3)
    0.2333       4  width 3  1+11+12 (3), 2..4 (3), 5..7 (3), 8..10 (3)
    0.2333       4  width 3  1+2+12 (3), 3..5 (3), 6..8 (3), 9..11 (3)
    0.3000      12  class    every class by itself
    """
    return circular(range(1, 13), width=width, singleton_weight=singleton_weight)


def california_counties() -> LabelGraph:
    """Return the 58 counties of California, neighbours where they share a border.

    From US Census boundaries (us-atlas 3.0.1, ISC licence).

    Examples
    --------
    >>> california_counties()
    <LabelGraph of 58 classes and 137 edges>
    """
    return _graph("california_counties")


def us_states() -> LabelGraph:
    """Return the 48 contiguous US states and DC, neighbours where they share a border.

    From US Census boundaries (us-atlas 3.0.1, ISC licence).

    Examples
    --------
    >>> us_states().neighbours("Maine")
    ('New Hampshire',)
    """
    return _graph("us_states")


def _graph(name: str) -> LabelGraph:
    file = resources.files("structent.structure") / "data" / f"{name}.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    return LabelGraph(content["edges"], content["nodes"])
