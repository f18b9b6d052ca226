import type { ErrorEnvelope } from "./error-code.ts";
import type { KitEvent } from "./event.ts";
import type { PromptRequest } from "./prompt.ts";

/** The subprotocol that the server speaks. */
export const socketProtocol = "kit";

/** What a browser, which can send no headers, offers beside it: the API key as base64url. */
export const bearerProtocolPrefix = "kit.bearer.";

/** What a client may send over a WebSocket: `prompt` and `approve` to an agent, `invoke` to a workflow. */
export type ClientFrame =
  | ({
      readonly type: "prompt";
      readonly request_id: string;
      readonly session?: string;
    } & PromptRequest &
      FrameTrace)
  | ({
      readonly type: "invoke";
      readonly request_id: string;
      readonly payload?: Readonly<Record<string, unknown>>;
    } & FrameTrace)
  | { readonly type: "abort"; readonly request_id: string }
  | {
      readonly type: "approve";
      readonly request_id?: string;
      readonly approval_id: string;
      readonly approved: boolean;
      readonly reason?: string;
    }
  | { readonly type: "ping" };

/** What stands in a frame as it does in the headers of a request; what is no trace is ignored. */
export interface FrameTrace {
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
}

/** What the server sends. */
export type ServerFrame =
  | {
      readonly type: "ready";
      readonly target: "agent" | "workflow";
      readonly name: string;
      readonly instance_id?: string;
    }
  | { readonly type: "started"; readonly request_id: string; readonly run_id?: string }
  | { readonly type: "event"; readonly request_id: string; readonly event: KitEvent }
  | { readonly type: "result"; readonly request_id: string; readonly result: unknown }
  | { readonly type: "error"; readonly request_id?: string; readonly error: ErrorEnvelope["error"] }
  | { readonly type: "pong" };
