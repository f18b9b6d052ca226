import type { SourceProblem } from "../../app/agents/discover-sources.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { CommandContext } from "../command.ts";
import { safeLine, safeLines } from "../text/safe-text.ts";

export interface EventPrinter {
  readonly onEvent: (event: KitEvent) => void;
  /** Whether the answer has been on the terminal already. */
  readonly printedText: boolean;
  /** Ends a line that deltas left open. */
  end(): void;
  problem(problem: SourceProblem): string;
}

/**
 * Prints what agents do, as it happens: answers on stdout, tools and remarks on stderr, one line each.
 * With `--json` every event is a line of JSON on stdout. Without `stream` only what goes wrong.
 */
export function createEventPrinter(context: CommandContext, stream: boolean): EventPrinter {
  const { output, json } = context;
  let open = false;
  let printed = false;
  const end = (): void => {
    if (open) output.write("\n");
    open = false;
  };
  const remark = (style: Parameters<typeof output.noteStyle>[0], text: string): void => {
    end();
    output.note(output.noteStyle(style, safeLine(text).slice(0, 200)));
  };
  const print = (event: KitEvent): void => {
    switch (event.type) {
      case "text_delta":
        // Tasks work below the answer: what they say is their parent's to use.
        if (event.task_id !== undefined) return;
        output.write(safeLines(event.text));
        open = !event.text.endsWith("\n");
        printed = true;
        return;
      case "tool_start":
        remark("cyan", `→ ${event.tool} ${JSON.stringify(event.args)}`);
        return;
      case "tool_end":
        if (event.is_error) remark("yellow", `  ✗ ${event.result}`);
        else remark("dim", `  ${firstLine(event.result)}`);
        return;
      case "task_start":
        remark("magenta", `→ task ${event.task_agent ?? ""} ${event.prompt}`);
        return;
      case "compaction_end":
        remark(
          "dim",
          `history shortened: ${event.tokens_before.toLocaleString("en")} → ${event.tokens_after.toLocaleString("en")} tokens`,
        );
        return;
      default:
        return;
    }
  };
  return {
    get printedText() {
      return printed;
    },
    end,
    problem: ({ path, message }) =>
      `${output.noteStyle("yellow", "warning:")} ${safeLine(path)}: ${safeLine(message)}`,
    onEvent(event) {
      if (json) {
        if (stream) output.write(`${JSON.stringify(event)}\n`);
        return;
      }
      if (event.type === "log") remark(event.level === "info" ? "dim" : "yellow", event.message);
      if (event.type === "error" && event.will_retry) {
        remark(
          "yellow",
          `${event.error.message} Trying again in ${((event.retry_in_ms ?? 0) / 1000).toFixed(1)} s.`,
        );
      }
      if (stream) print(event);
    },
  };
}

function firstLine(text: string): string {
  const [line = "", ...rest] = text.split("\n");
  return rest.length === 0 ? line : `${line} … ${rest.length} more lines`;
}
