"""The policy on a real vLLM engine in this process's care (`vllm.AsyncLLM`).

Owns: the engine's start and end, its child processes, requests and their abortion, weight syncs.
Does not own: text. Token ids go in and come out; no tokenizer is loaded.

vLLM is asyncio-only, so this adapter is too; everything above it runs on trio as well.

Invariants, each with a test on a real engine:
  1. log-probs are those of the distribution sampled from (temperature included);
  2. a cancelled `generate` leaves no request in the engine;
  3. after `load_weights` the engine answers with the new weights, proved by a probe, or it raises;
  4. after the `async with` block no child process is left, nor if this process is killed.
"""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.to_thread

from muarl.errors import PolicyError, SetupError, WeightSyncError
from muarl.own_folder import own_folder
from muarl.policy.logprob_probe import LogprobProbe, tolerance_of
from muarl.policy.protocol import (
    EngineLoad,
    FinishReason,
    GenerateRequest,
    Generation,
    VersionSwitch,
)
from muarl.policy.vllm_adapters import Adapter, Adapters
from muarl.policy.vllm_load import EngineWatch
from muarl.policy.vllm_process import (
    SHUTDOWN_S,
    end,
    engine_environment,
    family,
    import_vllm,
    nothing_outlives_us,
    tmpfs,
)
from muarl.policy.vllm_versions import split_versions
from muarl.policy.vllm_weights import prepare_weights

_GIB = 1 << 30


class VllmPolicy:
    """Samples from vLLM; an async context manager that starts and stops the engine.

    Example:
        async with VllmPolicy("model/") as policy:
            generation = await policy.generate(request)
            save_file(weights, policy.staging_dir / "model.safetensors")
            await policy.load_weights(policy.staging_dir, version=1, probe=probe)

    The engine's processes are spawned: a script that uses this needs the `__main__` guard.
    """

    def __init__(
        self,
        model_dir: str | Path,
        *,
        version: int = 0,
        dtype: str | None = None,
        max_model_len: int | None = None,
        max_num_seqs: int = 256,
        kv_cache_gib: float | None = None,
        threads: int = 0,
        compile_model: bool | None = None,
        logprob_tolerance: float | None = None,
        sync_timeout_s: float = 60.0,
        engine_args: Mapping[str, Any] | None = None,
    ) -> None:
        """Describe the engine; entering the context starts it.

        Args:
            model_dir: Folder in Hugging Face form; only config and safetensors are read.
            version: Version of the weights in `model_dir`.
            dtype: None takes float32 on a CPU and the checkpoint's own on a GPU.
            max_model_len: Tokens in one context; None takes the model's.
            max_num_seqs: Requests sampled at once; more wait in the engine.
            kv_cache_gib: Memory for keys and values; None takes 1 GiB on a CPU and on a GPU
                vLLM's own rule.
            threads: CPU threads of the engine; 0 takes all cores but one.
            compile_model: Whether to torch.compile the model; None does so on a GPU. On a CPU a
                tiny model gains a tenth and starts twice as slowly.
            logprob_tolerance: Largest gap a probe may show; None takes 1e-4 for float32 and 0.03
                for half precision.
            sync_timeout_s: Seconds a weight sync may take.
            engine_args: Further `vllm.AsyncEngineArgs`, which win over the above.
        """
        self.model_dir = Path(model_dir)
        self._first_version = self._version = version
        self._dtype = dtype
        self._max_model_len = max_model_len
        self._max_num_seqs = max_num_seqs
        self._kv_cache_gib = kv_cache_gib
        self._threads = threads
        self._compile = compile_model
        self._tolerance = logprob_tolerance
        self._sync_timeout_s = sync_timeout_s
        self._engine_args = dict(engine_args or {})
        self._request_ids = itertools.count()
        self._watch = EngineWatch()
        self._vllm: Any
        self._engine: Any
        self._processes: set[BaseProcess]
        self._folder: Path
        self._adapters: Adapters
        self._held: ExitStack

    @property
    def policy_version(self) -> int:
        return self._version

    @property
    def staging_dir(self) -> Path:
        """A private folder on tmpfs, where the system has one, to save new weights in."""
        return self._folder / "new"

    @property
    def _tied_dir(self) -> Path:
        return self._folder / "tied"

    @property
    def _on_cpu(self) -> bool:
        on_cpu: bool = self._vllm.platforms.current_platform.is_cpu()
        return on_cpu

    @property
    def logprob_tolerance(self) -> float:
        """Largest log-prob gap to the trainer that a weight sync accepts."""
        if self._tolerance is not None:
            return self._tolerance
        return tolerance_of(self.dtype)

    @property
    def dtype(self) -> str:
        """What the engine computes in, `float32`."""
        return str(self._engine.model_config.dtype).removeprefix("torch.")

    @property
    def engine_args(self) -> dict[str, Any]:
        """The `vllm.AsyncEngineArgs` it was started with."""
        return self._build_args()

    @property
    def num_unfinished(self) -> int:
        """Requests the engine holds now."""
        count: int = self._engine.output_processor.get_num_unfinished_requests()
        return count

    def load(self) -> EngineLoad | None:
        return self._watch.latest()

    async def __aenter__(self) -> Self:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise SetupError(
                "vLLM runs on asyncio only, and this run is on trio. "
                "Start it with anyio.run(main, backend='asyncio')."
            ) from None
        # The thread is waited for even when we are cancelled: half an engine would leave children.
        await anyio.to_thread.run_sync(self._start)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Left running, it would see the engine end and log that as a failure.
        if self._engine.output_handler is not None:
            self._engine.output_handler.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._stop)

    async def generate(self, request: GenerateRequest) -> Generation:
        with self._adapters.newest() as adapter:
            output = await self._run(
                request.prompt_ids,
                adapter,
                temperature=request.temperature,
                # vLLM takes signed 64-bit seeds and reads -1 as "no seed".
                seed=request.seed & (2**63 - 1),
                max_tokens=request.max_tokens,
                stop_token_ids=list(request.stop_token_ids),
                logprobs=0,
            )
        completion = output.outputs[0]
        by_labels = self._versions(completion.weight_versions)
        first, switches = by_labels if adapter.request is None else (adapter.version, ())
        finish_reason: FinishReason = completion.finish_reason
        if finish_reason not in ("stop", "length"):
            raise PolicyError(f"vLLM ended a request of {request.dialogue} as {finish_reason!r}")
        return Generation(
            token_ids=list(completion.token_ids),
            logprobs=list(completion.logprobs.logprobs),
            finish_reason=finish_reason,
            policy_version=first,
            switches=switches,
        )

    async def load_weights(self, weights_dir: Path, version: int, probe: LogprobProbe) -> float:
        """Put the safetensors of a folder into the running engine.

        Requests in flight are frozen, lose their cached keys and values, and go on under the new
        weights; their `policy_version` is that of their first token, and `switches` says from
        which token on the new ones sampled.

        Args:
            weights_dir: Holds the safetensors; best on tmpfs, see `staging_dir`.
            version: Version of these weights.
            probe: What the trainer says about fixed tokens under these weights.

        Returns:
            The largest absolute log-prob gap on the probe.

        Raises:
            WeightSyncError: The engine refused the weights or does not answer with them.
        """
        with self._in_time(version):
            await self._swap(weights_dir, version)
        return await self._proved(version, probe, None)

    async def load_adapters(self, adapters_dir: Path, version: int, probe: LogprobProbe) -> float:
        """The same with the adapters of a folder, as peft saves them; the engine needs `lora_args`.

        Requests in flight end under the adapters that they began with.
        """
        with self._in_time(version):
            adapter = await self._adapters.add(version, adapters_dir)
        gap = await self._proved(version, probe, adapter)
        await self._adapters.use(adapter)
        return gap

    @contextmanager
    def _in_time(self, version: int) -> Iterator[None]:
        # Shielded: cancelled half way, the engine would stay paused on unknown weights.
        with anyio.move_on_after(self._sync_timeout_s, shield=True) as deadline:
            yield
        if deadline.cancelled_caught:
            raise WeightSyncError(
                f"sync of version {version} did not finish within {self._sync_timeout_s:g} s"
            )

    async def _proved(self, version: int, probe: LogprobProbe, adapter: Adapter | None) -> float:
        gap = await self._gap(probe, adapter)
        if not gap <= self.logprob_tolerance:
            raise WeightSyncError(
                f"after the sync of version {version} the engine's log-probs are off by {gap:.4g} "
                f"(at most {self.logprob_tolerance:g} is rounding in {self.dtype}): it does not "
                "hold the trainer's weights"
            )
        self._version = version
        return gap

    async def probe_gap(self, probe: LogprobProbe) -> float:
        """Largest absolute difference between the engine's log-probs and the probe's."""
        with self._adapters.newest() as adapter:
            return await self._gap(probe, adapter)

    async def _gap(self, probe: LogprobProbe, adapter: Adapter | None) -> float:
        output = await self._run(
            probe.token_ids, adapter, temperature=0.0, max_tokens=1, prompt_logprobs=0
        )
        # Position 0 has no log-prob: nothing comes before it.
        scored: list[float] = output.prompt_logprobs.logprobs
        return probe.gap(scored)

    async def _swap(self, weights_dir: Path, version: int) -> None:
        engine = self._engine
        explicit_head = self._on_cpu
        ready = await anyio.to_thread.run_sync(
            prepare_weights, weights_dir, self._tied_dir, explicit_head
        )
        await engine.pause_generation(mode="keep")
        try:
            await engine.collective_rpc("reload_weights", kwargs={"weights_path": str(ready)})
            await engine.reset_prefix_cache(reset_running_requests=True)
            await engine.update_weight_version(str(version))
        except Exception as error:  # the engine re-raises whatever its worker raised
            raise WeightSyncError(
                f"vLLM could not load version {version} from {weights_dir}: {error}"
            ) from error
        finally:
            await engine.resume_generation()

    async def _run(self, prompt_ids: list[int], adapter: Adapter | None, **sampling: Any) -> Any:
        """One request, to its end or to its abortion. Returns vLLM's `RequestOutput`."""
        vllm, engine = self._vllm, self._engine
        try:
            params = vllm.SamplingParams(
                **sampling,
                flat_logprobs=True,
                detokenize=False,
                ignore_eos=True,  # what stops a message is the request's stop_token_ids alone
                output_kind=vllm.sampling_params.RequestOutputKind.FINAL_ONLY,
            )
            # `AsyncLLM.generate` would abort from within its own cancelled frame, where anyio
            # cancels the abort too; so the request is added, awaited and aborted here.
            with anyio.CancelScope(shield=True):
                collector = await engine.add_request(
                    f"muarl-{next(self._request_ids)}",
                    vllm.TokensPrompt(prompt_token_ids=prompt_ids),
                    params,
                    lora_request=adapter and adapter.request,
                )
            try:
                return await collector.get()
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await engine.abort(collector.request_id, internal=True)
                raise
            finally:
                collector.close()
        except (vllm.exceptions.VLLMError, ValueError) as error:
            raise PolicyError(f"vLLM refused or lost a request: {error}") from error

    def _versions(self, spans: Any) -> tuple[int, tuple[VersionSwitch, ...]]:
        """Version of the first token, and what took over; first of all vLLM says "default"."""
        return split_versions(
            [(span.version, span.start, span.end) for span in spans or ()],
            lambda label: self._first_version if label == "default" else int(label),
            unlabelled=self._first_version,
        )

    def _start(self) -> None:
        if not (self.model_dir / "config.json").is_file():
            raise SetupError(
                f"no model at {self.model_dir}: expected a folder with config.json and safetensors"
            )
        before = set(multiprocessing.active_children())
        with engine_environment(self._threads):
            self._vllm = import_vllm()
            try:
                args = self._vllm.AsyncEngineArgs(**self._build_args())
                self._engine = self._vllm.v1.engine.async_llm.AsyncLLM.from_engine_args(
                    args, stat_loggers=[lambda *_: self._watch]
                )
            except (RuntimeError, ValueError, OSError, TypeError) as error:
                raise SetupError(
                    f"vLLM did not start on {self.model_dir}: {error}. Its own words stand above; "
                    "VLLM_LOGGING_LEVEL=INFO makes it say more."
                ) from error
        self._processes = set(multiprocessing.active_children()) - before
        self._held = ExitStack()
        self._folder = self._held.enter_context(own_folder(tmpfs(), "muarl-weights-"))
        self._held.enter_context(nothing_outlives_us(family(self._processes), self._folder))
        self.staging_dir.mkdir()
        self._tied_dir.mkdir()
        self._adapters = Adapters(self._engine, self._folder, self._first_version)

    def _stop(self) -> None:
        started = family(self._processes)
        self._engine.shutdown(timeout=SHUTDOWN_S)
        # vLLM shuts down again when it is collected: let that be now, not at interpreter exit.
        del self._engine, self._adapters
        # An engine that had to be killed is not reaped by vLLM, and its workers outlive it.
        for process in self._processes:
            process.join(SHUTDOWN_S)
        end(started)
        self._held.close()

    def _build_args(self) -> dict[str, Any]:
        on_cpu = self._on_cpu
        args: dict[str, Any] = {
            "model": str(self.model_dir),
            "dtype": self._dtype or ("float32" if on_cpu else "auto"),
            "max_num_seqs": self._max_num_seqs,
            "enforce_eager": not (self._compile if self._compile is not None else not on_cpu),
            "logprobs_mode": "processed_logprobs",
            "skip_tokenizer_init": True,
            "generation_config": "vllm",  # the model folder's sampling defaults would bend T = 1
            "disable_log_stats": True,
            "use_tqdm_on_load": False,
        }
        if self._max_model_len is not None:
            args["max_model_len"] = self._max_model_len
        kv_cache_gib = self._kv_cache_gib or (1.0 if on_cpu else None)
        if kv_cache_gib is not None:
            args["kv_cache_memory_bytes"] = int(kv_cache_gib * _GIB)
        if on_cpu:
            # A seeded request whose prompt is split kills the CPU worker ("CPU Generator does not
            # use offset", vLLM 0.32), so prompts are taken whole.
            args["enable_chunked_prefill"] = False
        return args | self._engine_args
