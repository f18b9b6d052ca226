import type { ResolvedModel } from "../../models/contract.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { Operation, WaitingInputs } from "../agent-runtime.ts";
import { checkFiles, toFilePart, toImagePart } from "../prompt/input-files.ts";
import type { PromptHost } from "./prepare.ts";

/** The inputs that need not be read again during an operation. */
const known = new WeakMap<Operation, Record<"done" | "unreadable", Set<string>>>();

/**
 * Appends the messages of the waiting inputs that join the operation, in the order of the inputs. The log of the session has each
 * message once: an earlier attempt at this operation, or another operation whose process died, can have logged it.
 */
export async function joinInputs(
  { runtime, store }: PromptHost,
  operation: Operation,
  { ids, model }: { readonly ids: readonly string[]; readonly model: ResolvedModel },
): Promise<void> {
  const { done, unreadable } = known.get(operation) ?? { done: new Set(), unreadable: new Set() };
  known.set(operation, { done, unreadable });
  for (const id of ids) {
    if (done.has(id)) continue;
    if (unreadable.has(id)) return;
    let input: Awaited<ReturnType<WaitingInputs["read"]>>;
    try {
      input = await runtime.joins?.read(id);
    } catch {
      // The engine's database is away. The next turn reads the input, and later ones do not pass it.
      return;
    }
    if (input !== undefined && !(await hasInput(store, operation, input.operation_id))) {
      const { message: text, client_id: clientId, images = [], files: documents = [] } = input;
      const files = [...images.map(toImagePart), ...documents.map(toFilePart)];
      // It waits for its turn, which says why the model cannot read it. Later ones do not pass it.
      if (!canRead(model, files)) {
        unreadable.add(id);
        return;
      }
      operation.signal.throwIfAborted();
      const message = { text, files, clientId, joinedFrom: input.operation_id };
      await operation.log.appendUserMessage(message, operation.mask);
      operation.emit({
        type: "joined",
        message: text,
        ...(clientId === undefined ? {} : { client_id: clientId }),
        ...(images.length === 0 ? {} : { images: images.length }),
        joined_from: input.operation_id,
        dispatch_id: id,
      });
    }
    done.add(id);
  }
}

function canRead(model: ResolvedModel, files: Parameters<typeof checkFiles>[1]): boolean {
  try {
    checkFiles(model, files);
    return true;
  } catch {
    return false;
  }
}

/** Whether the log has an input, as the message of a joined one or as an operation of its own. */
async function hasInput(store: PromptHost["store"], { log, state }: Operation, id: string): Promise<boolean> {
  await log.stored();
  const entries = await store.read(state.key);
  return entries.some((entry) => entry.operation_id === id || joinedFrom(entry) === id);
}

/** The operation of the input that joined with an entry. */
export function joinedFrom(entry: SessionEntry): string | undefined {
  return entry.type === "message" && entry.message.role === "user" ? entry.message.joined_from : undefined;
}
