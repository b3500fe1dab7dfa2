"""What happens in a run: the tool that the mock model asks for, and what the driver does meanwhile.

tool/args/calls: the model's request.  limit: the host's tool timeout, in seconds.  act: what the
driver does once the server has the call.  tty: the host runs inside tmux; tui: interactively.
"""
SLOW = {"tool": "slow", "args": {"seconds": 15}}
SCENARIOS = {
    "ok":       {"tool": "echo", "args": {"text": "hello"}},
    "big":      {"tool": "big", "args": {"bytes": 1000000}},
    "parallel": {"tool": "slow", "args": {"seconds": 2}, "calls": 3},
    "noisy":    {"tool": "noisy", "args": {}},
    # The turn after the timeout takes 4 s, so that the host stays alive meanwhile.
    # Progress is off: some hosts restart their timeout at each notification.
    "timeout":  {**SLOW, "limit": 2, "llm": ["--after", "hang", "--hang-seconds", "4"],
                 "server_env": {"MCP_LAB_PROGRESS": "0"}},
    # the server ignores "cancelled" and answers 2 s after the host gave up
    "timeout-late": {"tool": "slow", "args": {"seconds": 4}, "limit": 2, "llm": ["--after", "hang", "--hang-seconds", "4"],
                     "server_env": {"MCP_LAB_PROGRESS": "0", "MCP_LAB_ON_CANCEL": "ignore"}},
    # the model calls the tool again after the timeout
    "timeout-retry": {**SLOW, "limit": 2, "llm": ["--rounds", "2", "--after", "hang", "--hang-seconds", "4"],
                      "server_env": {"MCP_LAB_PROGRESS": "0"}},
    # both at once: the call is sent again while it is pending, and its answer comes late
    "timeout-retry-late": {"tool": "slow", "args": {"seconds": 4}, "limit": 2,
                           "llm": ["--rounds", "2", "--after", "hang", "--hang-seconds", "4"],
                           "server_env": {"MCP_LAB_PROGRESS": "0", "MCP_LAB_ON_CANCEL": "ignore"}},
    # no limit set by us: does the host have one below 75 s?
    "timeout-default": {"tool": "slow", "args": {"seconds": 75}, "llm": ["--after", "hang", "--hang-seconds", "4"],
                        "server_env": {"MCP_LAB_PROGRESS": "0"}, "patience": 90},
    "timeout-progress": {**SLOW, "limit": 2, "llm": ["--after", "hang", "--hang-seconds", "4"]},
    "sigint":   {**SLOW, "act": "SIGINT"},
    "sigterm":  {**SLOW, "act": "SIGTERM"},
    "sigkill":  {**SLOW, "act": "SIGKILL"},
    "ctrl-c":   {**SLOW, "tty": True, "act": "keys:C-c"},
    "esc":      {**SLOW, "tty": True, "tui": True, "act": "keys:Escape", "watch": 5},
    "quit":     {**SLOW, "tty": True, "tui": True, "act": "keys:C-c,C-c,C-c"},
    # SDK clients only: abort through the API; drop = rmcp, drop the call's future
    "api-abort": {**SLOW, "abort": 1.5},
    "api-drop": {**SLOW, "drop": 1.5},
    # SIGINT to the host, but a server that neither signals nor EOF stop: does a
    # "cancelled" that the host writes after its own signal still arrive?
    "sigint-linger": {**SLOW, "act": "SIGINT",
                      "server_env": {"MCP_LAB_ON_EOF": "linger", "MCP_LAB_ON_SIGNAL": "ignore"}},
    # how the host stops a server that ignores EOF and signals
    "linger":   {"tool": "echo", "args": {"text": "hello"},
                 "server_env": {"MCP_LAB_ON_EOF": "linger", "MCP_LAB_ON_SIGNAL": "ignore"}},
}

# Keys that leave an interactive host while its call runs (scenario "quit").
QUIT_KEYS = {"codex": "C-c,3,Enter"}
# Keys that interrupt a running call (scenario "esc"), where one Escape is not enough.
INTERRUPT_KEYS = {"opencode": "Escape,Escape", "copilot": "Escape,Escape"}

# Keys that close a start-up dialog of an interactive host.
READY_KEYS = {"cline": "Escape"}
