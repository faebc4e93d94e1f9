"""Shards or a folder of JPEGs of 400x300 -> interleave -> decode -> resize to 224x224 -> batch(32), on two cores.

Everyone reads the same photos in the form that is its own: TFRecord shards, tar shards, or a folder of files. Those
that have decoders of their own use them; the others call simplejpeg and OpenCV, as dataset does, or Pillow where their
documentation does. spdl has decoders too, but they need FFmpeg's shared libraries on the system, which installing spdl
by pip doesn't bring; so it calls simplejpeg and OpenCV as well. The package tfrecord has no images.
"""

from __future__ import annotations

import io as bytes_io
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from harness.workload import Again, Pipeline, Workload
from harness_data import batches_of, cache_of_huggingface, photo, start_ray

PHOTOS = 1600
DISTINCT = 200
SHARDS = 8
BATCH = 32
SIDE = 224
WORKERS = 2
OPENCV = "simplejpeg and cv2.resize (bilinear, no antialias), uint8"
PILLOW = "Pillow (bilinear, antialiased), uint8"


def make_data(folder: Path, scale: float) -> None:
    """The photos as files, and the same in shards of TFRecord, as records, and of tar. Few are distinct."""
    from dataset import io

    count = int(PHOTOS * scale)
    photos = [photo(seed) for seed in range(min(count, DISTINCT))]
    (folder / "photos").mkdir()
    for shard in range(SHARDS):
        with (
            io.TFRecordWriter(folder / f"{shard}.tfrecord") as records,
            tarfile.open(folder / f"{shard}.tar", "w") as tar,
        ):
            for number in range(shard, count, SHARDS):
                content = photos[number % DISTINCT]
                (folder / "photos" / f"{number:06}.jpg").write_bytes(content)
                records.write(content)
                entry = tarfile.TarInfo(f"{number:06}.jpg")
                entry.size = len(content)
                tar.addfile(entry, bytes_io.BytesIO(content))


def images_of(batch: Any) -> Any:
    return batch["image"] if isinstance(batch, dict) else batch


def digest(batch: Any) -> float:
    """The sum of the images' mean values."""
    images = np.asarray(images_of(batch), np.float64)
    assert images.shape[1:] == (SIDE, SIDE, 3)
    return float(images.mean((1, 2, 3)).sum())


WORKLOAD = Workload(
    title="JPEG 400x300 -> interleave -> decode -> resize(224x224) -> batch(32)",
    make_data=make_data,
    count=lambda batch: len(images_of(batch)),
    digest=digest,
    unit="photos",
    tolerance=0.02,
    small=0.1,
    notes="Decoders and resizers differ, so mean values may differ by 2 %. io.resize and tf.image.resize give float32,"
    " four times the bytes of the uint8 of all others.",
)


def paths_of(folder: Path) -> list[str]:
    return sorted(map(str, (folder / "photos").iterdir()))


def shards_of(folder: Path, kind: str) -> list[str]:
    return [str(folder / f"{shard}.{kind}") for shard in range(SHARDS)]


def decoded(content: bytes) -> np.ndarray:
    """What those call that have no decoder of their own."""
    import cv2
    import simplejpeg

    image = simplejpeg.decode_jpeg(content)
    return cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)


def loaded(path: str) -> np.ndarray:
    return decoded(Path(path).read_bytes())


def loaded_by_pillow(path: str) -> np.ndarray:
    from PIL import Image

    with Image.open(path) as image:
        return resized_by_pillow(image)


def resized_by_pillow(image: Any) -> np.ndarray:
    from PIL import Image

    return np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR))


def one_thread_for_each_call(_worker: int = 0) -> None:
    """Keep OpenCV from spreading one call over all cores, where others make two calls at once."""
    import cv2

    cv2.setNumThreads(1)


def contents_by_dataset(folder: Path) -> Any:
    from dataset import AUTOTUNE, Dataset, TFRecordDataset

    shards = Dataset.from_tensor_slices(shards_of(folder, "tfrecord"))
    return shards.interleave(TFRecordDataset, cycle_length=4, num_parallel_calls=AUTOTUNE)


def mapped_by_dataset(folder: Path, function: Callable[[bytes], np.ndarray]) -> Pipeline:
    from dataset import AUTOTUNE

    contents = contents_by_dataset(folder)
    return contents.map(function, num_parallel_calls=AUTOTUNE).batch(BATCH).prefetch(AUTOTUNE)


@WORKLOAD.runner(
    "dataset", settings="TFRecord shards; io.decode_jpeg, io.resize (bilinear, no antialias), float32; all AUTOTUNE"
)
def dataset(folder: Path) -> Pipeline:
    from dataset import io

    one_thread_for_each_call()
    return mapped_by_dataset(folder, lambda content: io.resize(io.decode_jpeg(content), (SIDE, SIDE)))


@WORKLOAD.runner("dataset, uint8", settings=f"TFRecord shards; {OPENCV}; all AUTOTUNE")
def dataset_opencv(folder: Path) -> Pipeline:
    one_thread_for_each_call()
    return mapped_by_dataset(folder, decoded)


@WORKLOAD.runner(
    "dataset, batches", settings=f"TFRecord shards; {OPENCV}, by a map that decodes a batch of contents; all AUTOTUNE"
)
def dataset_batches(folder: Path) -> Pipeline:
    from dataset import AUTOTUNE

    one_thread_for_each_call()
    contents = contents_by_dataset(folder).batch(BATCH)
    batches = contents.map(lambda batch: np.stack(list(map(decoded, batch))), num_parallel_calls=AUTOTUNE)
    return batches.prefetch(AUTOTUNE)


def mapped_by_tf(folder: Path, dtype: str) -> Pipeline:
    import tensorflow as tf

    def decode(content: Any) -> Any:
        return tf.cast(tf.image.resize(tf.io.decode_jpeg(content, channels=3), (SIDE, SIDE)), dtype)

    shards = tf.data.Dataset.from_tensor_slices(shards_of(folder, "tfrecord"))
    contents = shards.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE)
    batches = contents.map(decode, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH)
    return Again(batches.prefetch(tf.data.AUTOTUNE).as_numpy_iterator)


@WORKLOAD.runner(
    "tf.data",
    settings="TFRecord shards; decode_jpeg, resize (bilinear, no antialias), float32; all AUTOTUNE",
    source="https://www.tensorflow.org/guide/data_performance#best_practice_summary",
)
def tf_data(folder: Path) -> Pipeline:
    return mapped_by_tf(folder, "float32")


@WORKLOAD.runner(
    "tf.data, uint8",
    settings="the same, cast to uint8 before batch",
    source="https://www.tensorflow.org/guide/data_performance#reducing_memory_footprint",
)
def tf_data_bytes(folder: Path) -> Pipeline:
    return mapped_by_tf(folder, "uint8")


def read_by_grain(folder: Path) -> Any:
    import grain

    return grain.MapDataset.source(paths_of(folder)).map(loaded)


@WORKLOAD.runner(
    "grain",
    settings=f"files; {OPENCV}; to_iter_dataset() with its 16 threads",
    source="https://google-grain.readthedocs.io/",
)
def grain(folder: Path) -> Pipeline:
    one_thread_for_each_call()
    return read_by_grain(folder).to_iter_dataset().batch(BATCH)


@WORKLOAD.runner(
    "grain, 2 processes",
    settings=f"files; {OPENCV}; mp_prefetch with 2 workers of a thread each",
    source="https://google-grain.readthedocs.io/",
)
def grain_processes(folder: Path) -> Pipeline:
    import grain
    from absl import flags

    flags.FLAGS.mark_as_parsed()  # grain's workers read absl's flags, which absl.app.run would have parsed
    options = grain.ReadOptions(num_threads=1, prefetch_buffer_size=BATCH)
    batches = read_by_grain(folder).to_iter_dataset(options).batch(BATCH)
    return batches.mp_prefetch(grain.MultiprocessingOptions(num_workers=WORKERS))


class Files:
    """A map-style dataset of torch: one file at each index."""

    def __init__(self, paths: list[str], load: Callable[[str], np.ndarray]) -> None:
        self.paths, self.load = paths, load

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.load(self.paths[index])


def loaded_by_torch(folder: Path, load: Callable[[str], np.ndarray]) -> Pipeline:
    from torch.utils.data import DataLoader

    files = Files(paths_of(folder), load)
    start = one_thread_for_each_call
    return DataLoader(files, BATCH, num_workers=WORKERS, persistent_workers=True, worker_init_fn=start)


@WORKLOAD.runner(
    "torch",
    settings=f"files; {OPENCV}; 2 persistent workers; tensors",
    source="https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",
)
def torch(folder: Path) -> Pipeline:
    return loaded_by_torch(folder, loaded)


@WORKLOAD.runner(
    "torch, Pillow",
    settings=f"files; {PILLOW}; 2 persistent workers; tensors",
    source="https://docs.pytorch.org/tutorials/beginner/data_loading_tutorial.html",
)
def torch_pillow(folder: Path) -> Pipeline:
    return loaded_by_torch(folder, loaded_by_pillow)


@WORKLOAD.runner(
    "torchdata.nodes",
    settings=f"files; {OPENCV}; ParallelMapper with 2 threads, Batcher, Mapper(np.stack), Prefetcher",
    source="https://pytorch.org/data/0.11/migrate_to_nodes_from_utils.html",
)
def torchdata_nodes(folder: Path) -> Pipeline:
    from torchdata.nodes import Batcher, IterableWrapper, Loader, Mapper, ParallelMapper, Prefetcher

    one_thread_for_each_call()
    images = ParallelMapper(IterableWrapper(paths_of(folder)), loaded, num_workers=WORKERS, method="thread")
    return Loader(Prefetcher(Mapper(Batcher(images, BATCH, drop_last=False), np.stack), prefetch_factor=2))


@WORKLOAD.runner(
    "mlx-data",
    settings="files; its own load_image and image_resize, uint8; batch, then prefetch(8, 2) as on its page",
    source="https://ml-explore.github.io/mlx-data/build/html/python/_autosummary/mlx.data.Stream.prefetch.html",
)
def mlx_data(folder: Path) -> Pipeline:
    import mlx.data as dx

    files = dx.buffer_from_vector([{"image": path.encode()} for path in paths_of(folder)])

    def epoch() -> Any:
        images = files.load_image("image").image_resize("image", SIDE, SIDE)
        return images.to_stream().batch(BATCH).prefetch(8, WORKERS)

    return Again(epoch)


@WORKLOAD.runner(
    "spdl",
    settings=f"files; {OPENCV}; pipe(concurrency=2), aggregate, np.stack, 2 threads and one more for stacking",
    source="https://facebookresearch.github.io/spdl/0.8.0/generated/spdl.pipeline.PipelineBuilder.html",
)
def spdl(folder: Path) -> Pipeline:
    from spdl.pipeline import PipelineBuilder

    one_thread_for_each_call()

    def epoch() -> Iterator[np.ndarray]:
        builder = PipelineBuilder().add_source(paths_of(folder)).pipe(loaded, concurrency=WORKERS)
        pipeline = builder.aggregate(BATCH).pipe(np.stack).add_sink().build(num_threads=WORKERS + 1)
        with pipeline.auto_stop():
            yield from pipeline

    return Again(epoch)


@WORKLOAD.runner(
    "spdl, batches",
    settings=f"files; {OPENCV}; a source of lists of paths, each of 2 threads loads a batch",
    source="https://facebookresearch.github.io/spdl/0.8.0/generated/spdl.pipeline.PipelineBuilder.html",
)
def spdl_batches(folder: Path) -> Pipeline:
    from spdl.pipeline import PipelineBuilder

    one_thread_for_each_call()

    def load(paths: list[str]) -> np.ndarray:
        return np.stack([loaded(path) for path in paths])

    def epoch() -> Iterator[np.ndarray]:
        source = batches_of(paths_of(folder), BATCH)
        builder = PipelineBuilder().add_source(source).pipe(load, concurrency=WORKERS)
        pipeline = builder.add_sink().build(num_threads=WORKERS)
        with pipeline.auto_stop():
            yield from pipeline

    return Again(epoch)


def loaded_by_webdataset(folder: Path, decoder: Any, finish: Callable[[Any], np.ndarray]) -> Pipeline:
    import webdataset as wds

    samples = wds.WebDataset(shards_of(folder, "tar"), shardshuffle=False)
    batches = samples.decode(decoder).to_tuple("jpg").map_tuple(finish).batched(BATCH)
    loader = wds.WebLoader(batches, batch_size=None, num_workers=WORKERS, persistent_workers=True)
    return Again(lambda: (images for (images,) in loader))


@WORKLOAD.runner(
    "webdataset",
    settings=f"tar shards; {OPENCV}; WebLoader with 2 persistent workers; arrays converted to tensors",
    source="https://webdataset.github.io/webdataset/",
)
def webdataset(folder: Path) -> Pipeline:
    one_thread_for_each_call()

    def decode(key: str, content: bytes) -> np.ndarray | None:
        return decoded(content) if key.endswith("jpg") else None

    return loaded_by_webdataset(folder, decode, np.asarray)


@WORKLOAD.runner(
    "webdataset, Pillow",
    settings=f'tar shards; decode("pil"), {PILLOW}; WebLoader with 2 persistent workers; arrays converted to tensors',
    source="https://webdataset.github.io/webdataset/",
)
def webdataset_pillow(folder: Path) -> Pipeline:
    return loaded_by_webdataset(folder, "pil", resized_by_pillow)


def resized_rows(rows: dict[str, list[Any]]) -> dict[str, list[np.ndarray]]:
    """The transform of Hugging Face datasets, which gives it decoded images."""
    return {"image": [resized_by_pillow(image) for image in rows["image"]]}


@WORKLOAD.runner(
    "HF datasets",
    settings=f"files as an Image column; {PILLOW}, in with_transform; torch's DataLoader with 2 persistent workers",
    source="https://huggingface.co/docs/datasets/use_with_pytorch",
)
def huggingface(folder: Path) -> Pipeline:
    import datasets
    from torch.utils.data import DataLoader

    cache = cache_of_huggingface(folder)
    files = datasets.load_dataset("imagefolder", data_dir=str(folder / "photos"), split="train", cache_dir=cache)
    images = files.with_transform(resized_rows)
    return DataLoader(images, BATCH, num_workers=WORKERS, persistent_workers=True)


@WORKLOAD.runner(
    "ray.data",
    settings=f'read_images(size=(224, 224), mode="RGB"), which is {PILLOW}; 2 cores',
    source="https://docs.ray.io/en/latest/data/api/doc/ray.data.read_images.html",
)
def ray_data(folder: Path) -> Pipeline:
    images = start_ray().read_images(str(folder / "photos"), size=(SIDE, SIDE), mode="RGB")
    return Again(lambda: images.iter_batches(batch_size=BATCH))


@WORKLOAD.runner("numpy", settings=f"files; {OPENCV}; one thread")
def loop(folder: Path) -> Pipeline:
    one_thread_for_each_call()

    def epoch() -> Iterator[np.ndarray]:
        return map(np.stack, batches_of(map(loaded, paths_of(folder)), BATCH))

    return Again(epoch)


@WORKLOAD.limit("simplejpeg and cv2.resize alone, on all cores")
def decode_alone(folder: Path) -> int:
    one_thread_for_each_call()
    contents = [Path(path).read_bytes() for path in paths_of(folder)]
    parts = [contents[start::WORKERS] for start in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        return sum(pool.map(lambda part: sum(1 for _ in map(decoded, part)), parts))
