import type { Message } from "./message.ts";
import type { TurnRecord } from "./receipt.ts";

export type { SessionInfo, SessionKey, TouchedSession, TouchedSessionPage } from "./session-page.ts";

/** One line of a session's log. What is active is a fold over them (`agents/session/fold.ts`). */
export type SessionEntry =
  | {
      readonly version: 1;
      readonly type: "message";
      readonly message: Message;
      readonly operation_id: string;
      /** On an answer of the model: what its prompt was made of, where that is other than in the turn before. */
      readonly turn?: TurnRecord;
    }
  | {
      readonly version: 1;
      readonly type: "compaction";
      /** Entries before this position (1-based) leave the context; the summary takes their place. */
      readonly keep_from: number;
      readonly summary: string;
      readonly tokens_before: number;
      readonly tokens_after: number;
      readonly timestamp: string;
      /** The operation that shortened the history; absent in older logs. */
      readonly operation_id?: string;
    }
  | {
      readonly version: 1;
      readonly type: "note";
      /**
       * The name of a fact that kit remembers of a session beside its messages, such as guidelines already
       * shown.
       */
      readonly name: string;
      readonly value: unknown;
      readonly timestamp: string;
      /**
       * Set where it is about one operation only, such as an approval: it is read again when that
       * operation is resumed, and kept in no memory until then.
       */
      readonly operation_id?: string;
    };
