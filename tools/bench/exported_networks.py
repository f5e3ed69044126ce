"""Networks that tools/bench/exported_models exports: torchvision's and small ones of transformers, with seeded weights.

Each entry of NETWORKS makes (module, inputs, dynamic axes): the module takes the inputs and returns one tensor, and
dynamic axes name the axes of each input that are symbols in the dynamic variant.
"""

import inspect

import torch
from torch import nn

NETWORKS = {}


class FirstTensor(nn.Module):
    """Calls a model with its inputs by name and returns its first tensor."""

    def __init__(self, model, names, **settings):
        super().__init__()
        self.model, self.names, self.settings = model, names, settings

    def forward(self, *inputs):
        result = self.model(**dict(zip(self.names, inputs)), **self.settings)
        return first_tensor(result)


def first_tensor(result):
    if isinstance(result, torch.Tensor):
        return result
    values = result.values() if hasattr(result, "values") else result
    return first_tensor(next(iter(values)))


def network(name):
    def add(make):
        NETWORKS[name] = make
        return make
    return add


def settle(model, *inputs):
    """Gives batch norms the statistics of random inputs and zero weights random numbers, so that results have usual sizes."""
    for parameter in model.parameters():
        if parameter.dim() > 1 and not parameter.any():
            nn.init.normal_(parameter, std=0.02)
    norms = [each for each in model.modules() if isinstance(each, nn.BatchNorm2d)]
    model.eval()
    for each in norms:
        each.momentum = None
        each.train()
    if norms:
        with torch.no_grad():
            model(*(torch.randn(2, *each.shape[1:]) for each in inputs))
    model.eval()


def add_vision(name, size=224, dynamic=(0, 2, 3), **settings):
    @network(name)
    def make():
        import torchvision
        model = torchvision.models.get_model(name, weights=None, **settings)
        image = torch.randn(1, 3, size, size)
        settle(model, image)
        return FirstTensor(model, list(inspect.signature(model.forward).parameters)), [image], [dynamic]


for vision in ("resnet18 resnet50 regnet_y_800mf mobilenet_v3_large efficientnet_v2_s convnext_tiny densenet121 "
               "shufflenet_v2_x1_0 mnasnet1_0 squeezenet1_1 resnext50_32x4d wide_resnet50_2 efficientnet_b0").split():
    add_vision(vision)
for vision in "mobilenet_v2 resnet34 vgg11 googlenet".split():
    add_vision(vision, **({"init_weights": False} if vision == "googlenet" else {}))
add_vision("swin_t", dynamic=(0,))
add_vision("swin_v2_t", dynamic=(0,))
add_vision("vit_b_16", dynamic=(0,))
add_vision("deeplabv3_mobilenet_v3_large", weights_backbone=None)
add_vision("lraspp_mobilenet_v3_large", weights_backbone=None)
add_vision("fcn_resnet50", weights_backbone=None, dynamic=(0,))


def tokens(length=128, count=1):
    return torch.randint(0, 1000, (count, length))


def add_text(name, config, model, length=128, **settings):
    """A model of transformers over token ids, with two layers and symbolic batch and length."""
    @network(name)
    def make():
        import transformers
        made = getattr(transformers, config)(num_hidden_layers=2, vocab_size=1000, **settings)
        made._attn_implementation = "sdpa"
        built = getattr(transformers, model)(made)
        extra = {"use_cache": False} if hasattr(made, "use_cache") else {}
        return FirstTensor(built, ["input_ids"], **extra), [tokens(length)], [(0, 1)]


SIZES = {"hidden_size": 1024, "intermediate_size": 2816, "num_attention_heads": 16}
add_text("bert", "BertConfig", "BertModel")
add_text("roberta", "RobertaConfig", "RobertaModel")
add_text("electra", "ElectraConfig", "ElectraModel")
add_text("albert", "AlbertConfig", "AlbertModel", hidden_size=768, num_attention_heads=12, intermediate_size=3072)
add_text("deberta_v2", "DebertaV2Config", "DebertaV2Model", hidden_size=768, num_attention_heads=12, intermediate_size=3072,
         relative_attention=True, pos_att_type=["p2c", "c2p"])
add_text("llama", "LlamaConfig", "LlamaModel", num_key_value_heads=4, **SIZES)
add_text("mistral", "MistralConfig", "MistralModel", num_key_value_heads=4, **SIZES)
add_text("qwen3", "Qwen3Config", "Qwen3Model", num_key_value_heads=4, head_dim=64, **SIZES)
add_text("phi3", "Phi3Config", "Phi3Model", num_key_value_heads=4, pad_token_id=0, **SIZES)
add_text("gemma2", "Gemma2Config", "Gemma2Model", num_key_value_heads=4, head_dim=64, **SIZES)
add_text("gpt_neox", "GPTNeoXConfig", "GPTNeoXModel", hidden_size=1024, intermediate_size=4096, num_attention_heads=16)
add_text("opt", "OPTConfig", "OPTModel", hidden_size=768, ffn_dim=3072, num_attention_heads=12)
add_text("gpt2", "GPT2Config", "GPT2Model")
add_text("qwen2", "Qwen2Config", "Qwen2Model", num_key_value_heads=4, **SIZES)
add_text("gemma", "GemmaConfig", "GemmaModel", num_key_value_heads=4, head_dim=64, **SIZES)
add_text("stablelm", "StableLmConfig", "StableLmModel", num_key_value_heads=4, **SIZES)
add_text("mpnet", "MPNetConfig", "MPNetModel")
add_text("bloom", "BloomConfig", "BloomModel", hidden_size=1024, n_head=16)


def add_images(name, config, model, input_name, shape, **settings):
    @network(name)
    def make():
        import transformers
        made = getattr(transformers, config)(num_hidden_layers=2, **settings)
        return FirstTensor(getattr(transformers, model)(made), [input_name]), [torch.randn(*shape)], [(0,)]


add_images("vit", "ViTConfig", "ViTModel", "pixel_values", (1, 3, 224, 224))
add_images("dinov2", "Dinov2Config", "Dinov2Model", "pixel_values", (1, 3, 224, 224), image_size=224)
add_images("deit", "DeiTConfig", "DeiTModel", "pixel_values", (1, 3, 224, 224))
add_images("siglip_vision", "SiglipVisionConfig", "SiglipVisionModel", "pixel_values", (1, 3, 224, 224))
add_images("clip_vision", "CLIPVisionConfig", "CLIPVisionModel", "pixel_values", (1, 3, 224, 224))
add_images("wav2vec2", "Wav2Vec2Config", "Wav2Vec2Model", "input_values", (1, 16000))


@network("segformer")
def segformer():
    import transformers
    return FirstTensor(transformers.SegformerModel(transformers.SegformerConfig()), ["pixel_values"]), \
        [torch.randn(1, 3, 224, 224)], [(0,)]


@network("whisper_encoder")
def whisper_encoder():
    import transformers
    config = transformers.WhisperConfig(encoder_layers=2, decoder_layers=1, d_model=384, encoder_attention_heads=6)
    encoder = transformers.WhisperModel(config).encoder
    return FirstTensor(encoder, ["input_features"]), [torch.randn(1, 80, 3000)], [(0,)]


@network("t5_encoder")
def t5_encoder():
    import transformers
    config = transformers.T5Config(num_layers=2, vocab_size=1000)
    return FirstTensor(transformers.T5EncoderModel(config), ["input_ids"]), [tokens()], [(0, 1)]


@network("bilstm")
def bilstm():
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(256, 256, num_layers=2, bidirectional=True, batch_first=True)
            self.head = nn.Linear(512, 64)

        def forward(self, x):
            return self.head(self.lstm(x)[0])

    return Tagger(), [torch.randn(2, 100, 256)], [(1,)]


@network("unet_block")
def unet_block():
    class Block(nn.Module):
        """A residual block of a diffusion network with self-attention."""

        def __init__(self, channels=320, heads=8):
            super().__init__()
            self.norms = nn.ModuleList(nn.GroupNorm(32, channels) for _ in range(3))
            self.convs = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
            self.qkv, self.out, self.heads = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels), heads

        def forward(self, x):
            y = self.convs[0](nn.functional.silu(self.norms[0](x)))
            x = x + self.convs[1](nn.functional.silu(self.norms[1](y)))
            n, c, h, w = x.shape
            rows = self.norms[2](x).flatten(2).transpose(1, 2)
            q, k, v = self.qkv(rows).unflatten(2, (3, self.heads, c // self.heads)).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            return x + self.out(y).transpose(1, 2).unflatten(2, (h, w))

    return Block(), [torch.randn(1, 320, 32, 32)], [(0,)]


@network("llama_decode")
def llama_decode():
    class Step(nn.Module):
        """One decoder layer for one token, with caches of symbolic length as inputs and outputs."""

        def __init__(self, width=1024, heads=16, kv_heads=4):
            super().__init__()
            self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
            self.q = nn.Linear(width, width, bias=False)
            self.kv = nn.Linear(width, 2 * kv_heads * self.size, bias=False)
            self.out = nn.Linear(width, width, bias=False)
            self.gate, self.up = (nn.Linear(width, 2816, bias=False) for _ in range(2))
            self.down = nn.Linear(2816, width, bias=False)

        def forward(self, x, keys, values):
            n = x.shape[0]
            q = self.q(x).view(n, 1, self.heads, self.size).transpose(1, 2)
            k, v = self.kv(x).view(n, 1, 2, self.kv_heads, self.size).permute(2, 0, 3, 1, 4)
            keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
            y = nn.functional.scaled_dot_product_attention(q, keys, values, enable_gqa=True)
            x = x + self.out(y.transpose(1, 2).flatten(2))
            return x + self.down(nn.functional.silu(self.gate(x)) * self.up(x))

    return Step(), [torch.randn(1, 1, 1024), torch.randn(1, 4, 511, 64), torch.randn(1, 4, 511, 64)], [(), (2,), (2,)]
