"""Pictures and what the reference implementations make of them. Run once by hand; what it writes is committed.

    python3 -m venv V && V/bin/pip install pillow==13.0.0 numpy==2.4.6 transformers==4.46.3 opencv-python-headless==5.0.0.*
    V/bin/python libs/processing/reference/images/generate.py

`pictures/`: small synthetic files. `resized.json`: raw levels after Pillow's and OpenCV's resize, whole, as base64.
`tensors.json`: for each recipe and picture the tensor's shape, sum and 512 values at fixed places, from the image
processors of Hugging Face transformers where there is one, else from the NumPy written here.
"""
import base64, io, json, math, os, warnings
import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageOps
from transformers import (CLIPImageProcessor, ConvNextImageProcessor, DetrImageProcessor, EfficientNetImageProcessor,
                          MobileNetV2ImageProcessor, ViTImageProcessor)

here = os.path.dirname(os.path.abspath(__file__))
pictures = os.path.join(here, 'pictures')
os.makedirs(pictures, exist_ok=True)
warnings.filterwarnings('ignore')
rng = np.random.default_rng(7)


def scene(width, height, noise=6):
    """Slopes, edges, thin lines, text and a little noise: what resizing tells apart."""
    y, x = np.mgrid[0:height, 0:width]
    levels = np.stack([255 * x / width, 255 * y / height, 127 + 127 * np.sin((x * x + y * y) / (width + height) / 3)], -1)
    image = Image.fromarray(levels.astype(np.uint8))
    draw = ImageDraw.Draw(image)
    draw.ellipse([width * .1, height * .2, width * .5, height * .8], fill=(220, 30, 40), outline=(0, 0, 0))
    draw.rectangle([width * .55, height * .1, width * .9, height * .5], fill=(20, 60, 200))
    for i in range(0, height, 7):
        draw.line([width * .5, height * .6, width * .98, i], fill=(255, 255, 255))
    draw.text((width * .15, height * .4), 'Perch 0123', fill=(255, 255, 0))
    levels = np.asarray(image).astype(int) + rng.integers(-noise, noise + 1, (height, width, 3))
    return Image.fromarray(np.clip(levels, 0, 255).astype(np.uint8))


def save(name, image, **kw):
    image.save(os.path.join(pictures, name), **kw)


photo = scene(320, 240)
save('photo.jpg', photo, quality=85)
save('progressive-444.jpg', scene(233, 171), quality=90, progressive=True, subsampling=0)
save('plain.png', scene(97, 131))
save('wide.png', scene(401, 60, 2))
save('gray.jpg', scene(150, 110).convert('L'), quality=88)
save('gray.png', scene(64, 48).convert('L'))
save('dot.png', Image.new('RGB', (1, 1), (10, 200, 30)))
save('bilevel.png', scene(90, 70).convert('1'))
save('palette.png', scene(90, 70).quantize(64))
save('cmyk.jpg', scene(120, 90).convert('CMYK'), quality=92)
save('lossless.webp', scene(110, 80, 3), lossless=True)
save('lossy.webp', scene(200, 150), quality=80)
exif = Image.Exif()
exif[0x112] = 6
save('turned.jpg', scene(160, 100), quality=90, exif=exif)
see_through = scene(100, 80).convert('RGBA')
see_through.putalpha(Image.fromarray((np.mgrid[0:80, 0:100][1] * 255 / 99).astype(np.uint8)))
save('alpha.png', see_through)
deep = (np.asarray(scene(60, 50)).astype(np.uint16) * 257)
cv2.imwrite(os.path.join(pictures, 'deep.png'), deep[:, :, ::-1])
cv2.imwrite(os.path.join(pictures, 'deep-gray.png'), deep[:, :, 0])
frames = [scene(40, 30), scene(40, 30)]
save('animated.webp', frames[0], save_all=True, append_images=frames[1:], duration=100)
save('animated.png', frames[0], save_all=True, append_images=frames[1:], duration=100)
save('animated.gif', frames[0], save_all=True, append_images=frames[1:], duration=100)


def opened(name):
    image = Image.open(os.path.join(pictures, name))
    return ImageOps.exif_transpose(image).convert('RGB')


# 1. levels after decoding, and after resizing a lossless picture
def packed(array):
    return base64.b64encode(np.ascontiguousarray(array, np.uint8).tobytes()).decode()


def flattened(name):
    image = Image.open(os.path.join(pictures, name)).convert('RGBA')
    return Image.alpha_composite(Image.new('RGBA', image.size, (255, 255, 255, 255)), image).convert('RGB')


def levels(name):
    if name == 'alpha.png':
        return flattened(name)
    if name.startswith('deep'):
        return Image.fromarray(cv2.cvtColor(cv2.imread(os.path.join(pictures, name), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB))
    return opened(name)


decoded = {}
for name in sorted(os.listdir(pictures)):
    if name.startswith('animated'):
        continue
    image = levels(name)
    flat = np.asarray(image).reshape(-1)
    places = (np.arange(256, dtype=np.int64) * 7919) % flat.size
    decoded[name] = {'width': image.width, 'height': image.height, 'levels': packed(flat[places])}
json.dump(decoded, open(os.path.join(here, 'decoded.json'), 'w'), indent=0)

filters = {'nearest': 0, 'lanczos': 1, 'bilinear': 2, 'bicubic': 3, 'box': 4, 'hamming': 5}
resized = []
for name, sizes in [('plain.png', [(31, 47), (150, 90), (97, 60), (7, 131), (1, 1)]), ('gray.png', [(20, 33), (65, 49)])]:
    for size in sizes:
        for filter, number in filters.items():
            image = Image.open(os.path.join(pictures, name))
            resized.append({'picture': name, 'width': size[0], 'height': size[1], 'resample': filter,
                            'levels': packed(np.asarray(image.resize(size, number)))})
for size in [(31, 47), (150, 90), (97, 60)]:
    image = np.asarray(Image.open(os.path.join(pictures, 'plain.png')))
    for filter, number in {'nearest': cv2.INTER_NEAREST, 'bilinear': cv2.INTER_LINEAR}.items():
        resized.append({'picture': 'plain.png', 'width': size[0], 'height': size[1], 'resample': filter, 'antialias': False,
                        'levels': packed(cv2.resize(image, size, interpolation=number))})
json.dump(resized, open(os.path.join(here, 'resized.json'), 'w'), indent=0)


# 2. tensors of common models
def transformer(make, config):
    shown = make(**config)
    return {'huggingFace': json.loads(shown.to_json_string()),
            'of': lambda image: shown(image, return_tensors='np')['pixel_values'][0]}


imagenet = dict(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])


def normalised(image, mean, std):
    array = np.asarray(image).astype(np.float32) / np.float32(255)
    return ((array - np.array(mean, np.float32)) / np.array(std, np.float32)).transpose(2, 0, 1)


def torchvision(resample, edge, side):
    """torchvision.transforms: Resize(edge), CenterCrop(side), ToTensor, Normalize on a PIL image."""
    def of(image):
        width, height = image.size
        short, long = min(width, height), max(width, height)
        other = int(edge * long / short)
        image = image.resize((edge, other) if width <= height else (other, edge), resample)
        left, top = int(round((image.width - side) / 2.0)), int(round((image.height - side) / 2.0))
        return normalised(image.crop((left, top, left + side, top + side)), **imagenet)
    return of


def letterbox(image):
    """YOLO: fit into 160 x 160, the rest 114 on both sides."""
    side = 160
    factor = min(side / image.width, side / image.height)
    inner = (int(round(image.width * factor)), int(round(image.height * factor)))
    canvas = Image.new('RGB', (side, side), (114, 114, 114))
    canvas.paste(image.resize(inner, Image.BILINEAR), ((side - inner[0]) // 2, (side - inner[1]) // 2))
    return (np.asarray(canvas).astype(np.float32) / np.float32(255)).transpose(2, 0, 1)


def ocr_detection(image):
    """PP-OCR DetResizeForTest (limit_type max, 160) and NormalizeImage, on BGR as cv2.imread answers it."""
    array = np.asarray(image)[:, :, ::-1]
    height, width = array.shape[:2]
    ratio = 160 / max(height, width) if max(height, width) > 160 else 1.0
    size = [max(int(round(int(round(side * ratio)) / 32) * 32), 32) for side in (width, height)]
    return normalised(cv2.resize(array, tuple(size)), **imagenet)


def ocr_recognition(image):
    """PP-OCR resize_norm_img: 48 high, at most 320 wide, the rest zeros, on BGR."""
    array = np.asarray(image)[:, :, ::-1]
    height, width = array.shape[:2]
    inner = min(320, math.ceil(48 * width / height))
    array = cv2.resize(array, (inner, 48)).astype(np.float32).transpose(2, 0, 1) / 255
    out = np.zeros((3, 48, 320), np.float32)
    out[:, :, :inner] = (array - 0.5) / 0.5
    return out


def digits(image):
    return np.asarray(image.convert('L').resize((28, 28), Image.BILINEAR)).reshape(28, 28, 1)


mean_std = {'imageMean': imagenet['mean'], 'imageStd': imagenet['std']}
recipes = {
    'vit': transformer(ViTImageProcessor, {}),
    'clip': transformer(CLIPImageProcessor, {}),
    'resnet (Hugging Face)': transformer(ConvNextImageProcessor, {'size': {'shortest_edge': 224}, 'crop_pct': 0.875, 'resample': 3}),
    'convnext 384': transformer(ConvNextImageProcessor, {'size': {'shortest_edge': 384}}),
    'mobilenet v2': transformer(MobileNetV2ImageProcessor, {}),
    'efficientnet (Hugging Face)': transformer(EfficientNetImageProcessor, {'size': {'height': 224, 'width': 224}, 'resample': 3,
        'image_mean': imagenet['mean'], 'image_std': imagenet['std']}),
    'detr': transformer(DetrImageProcessor, {'size': {'shortest_edge': 200, 'longest_edge': 333}, 'do_pad': False}),
    'resnet (torchvision)': {'options': {'size': {'shortestEdge': 256}, 'centerCrop': {'width': 224, 'height': 224},
        'cropRounding': 'even', **mean_std}, 'of': torchvision(Image.BILINEAR, 256, 224)},
    'efficientnet b1 (torchvision)': {'options': {'size': {'shortestEdge': 255}, 'centerCrop': {'width': 240, 'height': 240},
        'cropRounding': 'even', 'resample': 'bicubic', **mean_std}, 'of': torchvision(Image.BICUBIC, 255, 240)},
    'letterbox': {'options': {'size': {'width': 160, 'height': 160}, 'fit': 'contain', 'padColor': [114, 114, 114]}, 'of': letterbox},
    'PP-OCR detection': {'options': {'size': {'longestEdge': 160}, 'onlyShrink': True, 'multipleOf': 32, 'antialias': False,
        'channels': 'bgr', **mean_std}, 'of': ocr_detection},
    'PP-OCR recognition': {'options': {'size': {'height': 48, 'maxWidth': 320}, 'pad': {'width': 320, 'height': 48},
        'antialias': False, 'channels': 'bgr', 'imageMean': [0.5], 'imageStd': [0.5]}, 'of': ocr_recognition},
    'digits': {'options': {'size': {'width': 28, 'height': 28}, 'channels': 'gray', 'layout': 'nhwc', 'datatype': 'UINT8'}, 'of': digits},
}
tensors = []
for recipe, parts in recipes.items():
    for name in ['photo.jpg', 'progressive-444.jpg', 'plain.png', 'wide.png', 'turned.jpg', 'gray.jpg', 'lossless.webp', 'lossy.webp']:
        tensor = parts['of'](opened(name))
        flat = np.asarray(tensor, np.float32).reshape(-1)
        places = (np.arange(512, dtype=np.int64) * 104729) % flat.size
        tensors.append({'recipe': recipe, 'picture': name, 'shape': list(tensor.shape), 'mean': float(flat.mean(dtype=np.float64)),
                        'values': base64.b64encode(flat[places].astype('<f4').tobytes()).decode()})
wishes = {recipe: {key: value for key, value in parts.items() if key != 'of'} for recipe, parts in recipes.items()}
json.dump({'recipes': wishes, 'tensors': tensors}, open(os.path.join(here, 'tensors.json'), 'w'), indent=0)
