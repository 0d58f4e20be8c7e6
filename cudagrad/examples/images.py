"""A small convolutional network that reads pictures: ``python -m cudagrad.examples.images``."""

import gzip
import os
import zlib

import numpy as np

import cudagrad as cg
from cudagrad import nn
from cudagrad.nn import functional as F
from cudagrad.utils.data import DataLoader, TensorDataset, random_split

from .training import Problem, Run, command, device_of, endless, learning_rate, options, positive, rate

FASHION = "/usr/share/datasets/fashion-mnist"
WHERE = "digits (scikit-learn's), fashion (Debian's dataset-fashion-mnist) or a folder with four files like MNIST's"
MAGIC = {1: 0x801, 3: 0x803}  # of an IDX file of bytes with so many axes


def digits():
    """(training set, held-out set): the 1,797 handwritten digits of scikit-learn, a fifth of them held out.

    The split is the same for every seed.

    Raises      Problem where scikit-learn is not installed
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        fix = "pip install 'cudagrad-cupy[examples]', or give --data"
        raise Problem(f"--data digits: the digits are scikit-learn's, which is not installed (fix: {fix})") from error
    images, labels = load_digits(return_X_y=True)
    whole = dataset_of(images.reshape(-1, 8, 8) / 16, labels)
    return random_split(whole, [0.8, 0.2], generator=cg.Generator().manual_seed(0))


def idx_folder(folder):
    """(training set, held-out set): the four files of MNIST, or of a set in its form, in a folder.

    Raises      Problem where one is missing or damaged, or they do not fit together
    """
    sets = []
    for name in ("train", "t10k"):
        images = read_idx(os.path.join(folder, f"{name}-images-idx3-ubyte.gz"), 3)
        labels = read_idx(os.path.join(folder, f"{name}-labels-idx1-ubyte.gz"), 1)
        if len(images) != len(labels) or not len(images):
            raise Problem(f"--data {folder}: {name} has {len(images)} images and {len(labels)} labels")
        if min(images.shape[1:]) < 4:
            raise Problem(f"--data {folder}: {name} has pictures of {images.shape[1:]}, need 4 x 4 or larger")
        sets.append(dataset_of(images / np.float32(255), labels))
    return sets


def read_idx(file, axes):
    """The uint8 array, of so many axes, in a gzipped IDX file.

    Raises      Problem
    Source      yann.lecun.com/exdb/mnist: big-endian int32 magic number and sizes, then the bytes
    """
    try:
        with gzip.open(file) as f:
            data = f.read()
    except FileNotFoundError as error:
        raise Problem(f"--data: there is no {file} (fix: {WHERE})") from error
    except (OSError, EOFError, zlib.error) as error:
        raise Problem(f"--data: {file} cannot be read: {error}") from error
    head = np.frombuffer(data[: 4 + 4 * axes], ">i4")
    if len(head) != 1 + axes or head[0] != MAGIC[axes] or len(data) != 4 + 4 * axes + np.prod(head[1:], dtype=np.int64):
        raise Problem(f"--data: {file} is no IDX file of bytes with {axes} axes, or is cut short")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(head[1:])


def dataset_of(images, labels):
    """Pairs of a float32 picture [1, H, W] and its int64 label."""
    pictures = np.ascontiguousarray(images[:, None], np.float32)
    return TensorDataset(cg.from_numpy(pictures), cg.from_numpy(labels.astype(np.int64)))


class Net(nn.Module):
    """Two stages of convolution, batch norm and pooling, then two linear layers with dropout.

    Shapes      x: [B, 1, height, width] -> [B, classes]
    """

    def __init__(self, height, width, classes, channels=16):
        super().__init__()
        self.features = nn.Sequential(self._stage(1, channels), self._stage(channels, 2 * channels))
        left = (height // 4) * (width // 4)
        hidden = 8 * channels
        self.classify = nn.Sequential(
            nn.Flatten(),
            nn.Linear(2 * channels * left, hidden),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(hidden, classes),
        )

    @staticmethod
    def _stage(before, after):
        convolution = nn.Conv2d(before, after, 3, padding=1, bias=False)  # the batch norm has a bias
        return nn.Sequential(convolution, nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2))

    def forward(self, x):
        return self.classify(self.features(x))


@cg.no_grad()
def accuracy_of(model, dataset, device):
    """The share of a set that the model names rightly."""
    model.eval()
    right = 0
    for images, labels in DataLoader(dataset, batch_size=500):
        right += (model(images.to(device)).argmax(1) == labels.to(device)).sum().item()
    return right / len(dataset)


def main(argv=None):
    """Train, and return the accuracy on held-out pictures."""
    parser = options("Train a small CNN on pictures.", steps=500, every=100, out="runs/images")
    parser.add_argument("--data", default="digits", help=WHERE)
    parser.add_argument("--channels", type=positive, default=16, help="of the first convolution")
    parser.add_argument("--batch", type=positive, default=64)
    parser.add_argument("--lr", type=rate, default=3e-3, help="peak learning rate")
    args = parser.parse_args(argv)
    device = device_of(args.device)

    cg.manual_seed(args.seed)
    train, held = digits() if args.data == "digits" else idx_folder(FASHION if args.data == "fashion" else args.data)
    image, _ = train[0]
    classes = 1 + max(int(label) for _, label in train)
    model = Net(*image.shape[1:], classes, args.channels).to(device)
    optimizer = cg.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    schedule = cg.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate(step, args.steps, 1.0, warmup=50))
    loader = DataLoader(train, args.batch, shuffle=True)
    count = sum(p.numel() for p in model.parameters())
    print(f"{len(train):,} pictures, {len(held):,} held out, {classes} classes; {count:,} parameters on {device}")

    run = Run(args, device, model=model, optimizer=optimizer, schedule=schedule, loader=loader)
    for _, (images, labels) in zip(run, endless(loader)):
        loss = F.cross_entropy(model(images.to(device)), labels.to(device), label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        run.log(loss.item(), len(images), "pictures")

    accuracy = accuracy_of(model, held, device)
    print(f"accuracy on held-out pictures {accuracy:.2%}")
    return accuracy


if __name__ == "__main__":
    command(main)
