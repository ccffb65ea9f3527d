"""The sets of plain numbers: one with many annotators, four with several labels per sample."""

from agra.data.catalog.entry import Counts, Entry, File, Request, Splits
from agra.data.readers.crowd import read_crowd
from agra.data.readers.mulan import read_mulan

RODRIGUES = "https://fprodrigues.com/mturk-datasets.tar.gz"
MULAN = "https://mulan.sourceforge.net/datasets-mlc.html"


def _load_crowd(request: Request) -> Splits:
    request.refuse_noise()
    return read_crowd(request.find(request.entry.files[0].path), name=request.name)


def _load_mulan(request: Request) -> Splits:
    request.refuse_noise()
    return read_mulan(request.find(request.entry.files[0].path), name=request.name)


def _mulan(published: str, size: int, sha256: str) -> tuple[File]:
    return (
        File(
            path=f"multilabel/mulan_{published}.npz",
            origin=MULAN,
            size=size,
            sha256=sha256,
            how="save the published training and test parts as x_train, y_train, x_test, y_test "
            "and the names as `labels` with numpy.savez",
        ),
    )


MUSIC_GENRE = Entry(
    name="music-genre",
    title="Songs by genre, as listeners heard it",
    origin=RODRIGUES,
    citation="Rodrigues, Pereira, Ribeiro: Learning from Multiple Annotators: Distinguishing Good "
    "from Random Labelers, Pattern Recognition Letters 2013",
    licence="not stated",
    noise="vote of 44 listeners",
    load=_load_crowd,
    counts=Counts(
        rows={"train": 700, "test": 300},
        classes=10,
        wrong=204,
        given=(56, 76, 79, 59, 62, 81, 37, 100, 72, 78),
    ),
    files=(
        File(
            path="crowd/music_genre_amt.npz",
            origin=RODRIGUES,
            size=404_221,
            sha256="92f22d766f94d5dc8104d97a189216f997213d70c6ec2ccb904a2984c3069cf5",
            how="save features, true labels, answers (-1 for none) and genres as x_train, "
            "y_train, answers, x_test, y_test and classes with numpy.savez",
        ),
    ),
    notes="4.2 answers per song. There is no validation split.",
)

MULTILABEL = (
    Entry(
        name="yeast",
        title="Genes of yeast by function",
        origin=MULAN,
        citation="Elisseeff, Weston: A Kernel Method for Multi-Labelled Classification, NIPS 2001",
        licence="not stated",
        noise="none",
        load=_load_mulan,
        counts=Counts(
            rows={"train": 1500, "test": 917},
            classes=14,
            wrong=0,
            given=(476, 645, 598, 378, 532, 161, 198, 441, 261, 289, 98, 1128, 1116, 21),
        ),
        files=_mulan(
            "yeast", 922_377, "adcfa49e921235ad0ae1615e20e281c603eee97edb6387e905ab5da7e3976874"
        ),
    ),
    Entry(
        name="scene",
        title="Photographs by what is on them",
        origin=MULAN,
        citation="Boutell et al.: Learning Multi-Label Scene Classification, Pattern Recognition "
        "2004",
        licence="not stated",
        noise="none",
        load=_load_mulan,
        counts=Counts(
            rows={"train": 1211, "test": 1196},
            classes=6,
            wrong=0,
            given=(227, 165, 197, 196, 277, 224),
        ),
        files=_mulan(
            "scene", 2_465_444, "05fefa643824024d09224104e7b02da9e8155fa491844c437e2134a863e850c2"
        ),
    ),
    Entry(
        name="emotions",
        title="Music by the emotions it evokes",
        origin=MULAN,
        citation="Trohidis et al.: Multi-Label Classification of Music into Emotions, ISMIR 2008",
        licence="not stated",
        noise="none",
        load=_load_mulan,
        counts=Counts(
            rows={"train": 391, "test": 202},
            classes=6,
            wrong=0,
            given=(119, 107, 168, 89, 95, 131),
        ),
        files=_mulan(
            "emotions", 151_855, "3c0ef7daea3d90c52413ca177d30893d88516b6e3209506fc4171041ef264cfb"
        ),
    ),
    Entry(
        name="tmc2007",
        title="Reports on aviation safety by problem, 500 words",
        origin=MULAN,
        citation="Srivastava, Zane-Ulman: Discovering Recurring Anomalies in Text Reports "
        "Regarding Complex Space Systems, IEEE Aerospace 2005",
        licence="not stated",
        noise="none",
        load=_load_mulan,
        counts=Counts(
            rows={"train": 21_519, "test": 7077},
            classes=22,
            wrong=0,
            given=(
                *(1441, 12876, 393, 428, 3062, 6065, 1684, 2213, 405, 1107, 353),
                *(3357, 2162, 1261, 325, 935, 394, 1139, 6767, 647, 304, 574),
            ),
        ),
        files=_mulan(
            "tmc2007-500",
            676_528,
            "0b9b271393160e88d283018013020de0f053ebf789d6dc97da04a460628cfaf7",
        ),
        notes="Mulan's selection of 500 words, of which each report has few: CSR rows.",
    ),
)
