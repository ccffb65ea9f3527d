"""The paper's five text sets, with the votes of their labelling functions."""

from agra.data.catalog.entry import Counts, Entry, File, Request, Splits
from agra.data.readers.wrench import read_wrench

WRENCH = "https://github.com/JieyuZ2/wrench"
AFRICAN = "https://github.com/uds-lsv/transfer-distant-transformer-african"
SPLITS = ("train", "valid", "test")

_ZHANG = "Zhang et al.: WRENCH: A Comprehensive Benchmark for Weak Supervision, NeurIPS 2021"
_HEDDERICH = (
    "Hedderich et al.: Transfer Learning and Distant Supervision for Multilingual Transformer "
    "Models: A Study on African Languages, EMNLP 2020"
)
_HOW = {
    WRENCH: "unpack the benchmark's data sets, which are linked there; it comes",
    AFRICAN: "convert the tables and lexicons to WRENCH's JSON",
}


def _load(request: Request) -> Splits:
    request.refuse_noise()
    folder = request.folder(f"text/{request.name}/{part}.json" for part in (*SPLITS, "label"))
    return {split: read_wrench(folder, split, name=request.name) for split in SPLITS}


def _files(name: str, origin: str, *parts: tuple[str, int, str]) -> tuple[File, ...]:
    """The files of one set from (part, size, SHA-256)."""
    return tuple(
        File(
            path=f"text/{name}/{part}.json",
            origin=origin,
            size=size,
            sha256=sha256,
            how=_HOW[origin],
            optional=part == "lfs",
        )
        for part, size, sha256 in parts
    )


YOUTUBE = Entry(
    name="youtube",
    title="Comments under videos: spam or not",
    origin=WRENCH,
    citation=_ZHANG,
    licence="Apache-2.0",
    noise="vote of 10 functions",
    load=_load,
    counts=Counts(
        rows={"train": 1586, "valid": 120, "test": 250}, classes=2, wrong=298, given=(829, 757)
    ),
    files=_files(
        "youtube",
        WRENCH,
        ("train", 612314, "a435c4e6853c95ac8bdc6bcf9e01d4bad39aa8e5713d273ed01aa5edbfc215b8"),
        ("valid", 46697, "278b947d748b4b921b2dd60918318f7ee817584d85a719d0db6f5365d6e87b01"),
        ("test", 100483, "abcadb6e0a81d1b1a1f19ad6acb73fd201288fae3e89d88593fae9cbca4d5a21"),
        ("label", 25, "6837af4230238ed5c9d5d32ce309083b24491fe5d085f0b779298e7c67eeb74a"),
        ("lfs", 457, "a08ee56085cecabb00968b7f210097e31ed44d87093de8368e6a82a5cf835462"),
    ),
)

SMS = Entry(
    name="sms",
    title="Text messages: spam or not",
    origin=WRENCH,
    citation=_ZHANG,
    licence="Apache-2.0",
    noise="vote of 73 functions",
    load=_load,
    counts=Counts(
        rows={"train": 4571, "valid": 500, "test": 500}, classes=2, wrong=1459, given=(2915, 1656)
    ),
    files=_files(
        "sms",
        WRENCH,
        ("train", 1981811, "9d77f52d2af078dbcecffad72c6b22cb6f8fe89c68db0ad99e811be06ec46800"),
        ("valid", 216967, "977a3b91bdbdb12186b44ee422a51eac85de343b8159e4973b16cf4b3d245d32"),
        ("test", 215346, "7a3fad03b9ad609e91a276e92b3bc31fbb8a48eacbc1bf42853cd440a4f6c080"),
        ("label", 25, "5ba8069344eaf5578717910018232889bb77d6dad78b7fe7d002aeb089bc7efb"),
        ("lfs", 15880, "c4f1b92eec6a0adc270fe09491956fa34a173d173ad2662ef8d76f61c411e7e2"),
    ),
    notes="The votes published with the validation and test splits belong to other texts; texts "
    "and labels fit together. Kept as they are.",
)

TREC = Entry(
    name="trec",
    title="Questions by what they ask for",
    origin=WRENCH,
    citation=_ZHANG,
    licence="Apache-2.0",
    noise="vote of 68 functions",
    load=_load,
    counts=Counts(
        rows={"train": 4965, "valid": 500, "test": 500},
        classes=6,
        wrong=2395,
        given=(2810, 397, 635, 49, 397, 677),
    ),
    files=_files(
        "trec",
        WRENCH,
        ("train", 3012533, "ae9b5562c52153e086254f679428c6949d984910f08818b82db8411090ef0e06"),
        ("valid", 190473, "56b27e6796ecb4fe63d60060306bdb65dec6f8e5f345cdce068eb50a5f90b5c9"),
        ("test", 186217, "95b1a8fbefbeda9b75b96416814dd46794872809a2295832761b2a0b7bc5de3d"),
        ("label", 75, "c5b6ea0cd3a4632639df7eea02f92640ffb561dd6421d831bad7544defdb2e71"),
        ("lfs", 12702, "d4064731cafd00750647e3792c14b70b82f07e49734a8317400a36ea92bee54b"),
    ),
    notes="The test texts start with the fine-grained true type ('dist How far is it ...'). Kept "
    "as they are.",
)

YORUBA = Entry(
    name="yoruba",
    title="Yorùbá news headlines by topic",
    origin=AFRICAN,
    citation=_HEDDERICH,
    licence="not stated",
    noise="vote of 7 lexicons",
    load=_load,
    counts=Counts(
        rows={"train": 1340, "valid": 189, "test": 379},
        classes=7,
        wrong=567,
        given=(82, 338, 87, 138, 352, 91, 252),
    ),
    files=_files(
        "yoruba",
        AFRICAN,
        ("train", 445065, "364966e86227f5be6c47c260efcd255d1088a6fff38e32e39c758f232ea7cb1c"),
        ("valid", 62570, "0d371487f2821ef3dcdf46e6bf986f73de51e41c42bce7b12594735f6a49b9cf"),
        ("test", 125546, "ce6b14c377bf4eb364654c86c40a522e07d7dafc743aa8f0340562ac6969dc9f"),
        ("label", 113, "7eb77815a37f867233feedd53abac967b585120fbf8c86e4dbdc99c0fd512111"),
        ("lfs", 423, "9c4f4b35d79f367923f769391c6fcb0f39d8067d20cf55cc24f5af78c952a3f0"),
    ),
    notes="90 training rows have no vote, which AGRA's paper denies; they get a class by lot.",
)

HAUSA = Entry(
    name="hausa",
    title="Hausa news headlines by topic",
    origin=AFRICAN,
    citation=_HEDDERICH,
    licence="not stated",
    noise="vote of 5 lexicons",
    load=_load,
    counts=Counts(
        rows={"train": 2045, "valid": 290, "test": 582},
        classes=5,
        wrong=1035,
        given=(402, 206, 177, 162, 1098),
    ),
    files=_files(
        "hausa",
        AFRICAN,
        ("train", 540284, "41a3a346bfbca57e389b09afa09eab36f68972ddb44349fe6ab9156fee88c8a3"),
        ("valid", 76392, "c9f28e6e502c3c69ad54991adb2813ad04a87068cdcf1abe4b5f6a101a17c3fa"),
        ("test", 153299, "122b15bc49b380b81e6f556c7095d0b36b8b9538ce70914c09a367456c0799c2"),
        ("label", 77, "05e3af1da7e90956f90cbb4914ba6f845386995ec7ec5c5e6ae5200fe2b288a1"),
        ("lfs", 299, "3ec9b27cf4efd2d05bc77ac3c3ae2d33ae125ed08238eb336dc43db3fe496aa7"),
    ),
    notes="18 training rows have no vote, which AGRA's paper denies; they get a class by lot.",
)
