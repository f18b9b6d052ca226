import { withDeadline } from "../../base/abort.ts";
import { KitError } from "../../base/kit-error.ts";
import type { AuthorizeHook, AuthorizeRequest } from "../../protocol/access.ts";
import type { ServerLimits } from "../limits.ts";
import type { RouteRequest } from "../route.ts";

/** Asks the configuration's `authorize`. Without that hook, every admitted sender is permitted everything. */
export interface Authorization {
  /** Whether the configuration has an `authorize`, so that a sender may see only some items of a list. */
  readonly isRestricted: boolean;
  /** Throws `forbidden` if the hook refuses; also throws if the hook throws or does not answer in time. */
  check(request: AuthorizeRequest): Promise<void>;
  /**
   * As `check`, for a record that was found by its id. A sender that may not read it either gets the error for a record that does
   * not exist.
   */
  checkFound(
    request: AuthorizeRequest,
    options: { readonly reading: AuthorizeRequest["action"]; readonly missing: KitError },
  ): Promise<void>;
  /**
   * Returns a function for work that was just permitted, to call before each item of the result. It asks the hook again
   * once the last answer is `permissionMs` old, and throws as `check` does.
   */
  whilePermitted(request: AuthorizeRequest): () => Promise<void>;
  /** Returns the items of a list that the sender is permitted to see, in their order; `toRequest` creates the question for each item. */
  permitted<Item>(
    items: readonly Item[],
    toRequest: (item: Item) => AuthorizeRequest,
  ): Promise<readonly Item[]>;
  /**
   * Reads the first page of a list with items that the sender is permitted to see. It names a next page only if one that
   * follows has such items, or if the list goes on after the 600 items (at least one page) that it looks through: each
   * costs a call of the hook. If the sender may see nothing up to there, the page is empty, and the next page follows them.
   * With a hook the page has no `total`, which would tell how many items the sender may not see.
   */
  page<Item>(
    read: (from: { readonly cursor?: string; readonly limit?: number }) => Promise<ItemPage<Item>>,
    toRequest: (item: Item) => AuthorizeRequest,
  ): Promise<ItemPage<Item>>;
}

interface ItemPage<Item> {
  readonly items: readonly Item[];
  readonly next_cursor?: string | undefined;
  /** The number of items on all pages. */
  readonly total?: number | undefined;
}

/** `page` stops after that many items or pages behind the first page; it reads `limit` items at a time. */
const lookAhead = { items: 600, pages: 50, limit: 200 } as const;

export function createAuthorization(
  hook: AuthorizeHook | undefined,
  { hookTimeoutMs: timeoutMs, permissionMs }: Pick<ServerLimits, "hookTimeoutMs" | "permissionMs">,
): Authorization {
  const may = async (request: AuthorizeRequest): Promise<boolean> =>
    hook === undefined ||
    (await answerInTime(hook(request), { name: "server.authorize", timeoutMs })) === true;
  const check = async (request: AuthorizeRequest): Promise<void> => {
    if (hook !== undefined && !(await may(request))) throw refusal(request);
  };
  const permitted: Authorization["permitted"] = async (items, toRequest) => {
    if (hook === undefined) return items;
    const answers = await Promise.all(items.map((item) => may(toRequest(item))));
    return items.filter((_, position) => answers[position]);
  };
  return {
    isRestricted: hook !== undefined,
    check,
    async checkFound(request, { reading, missing }) {
      if (await may(request)) return;
      if (request.action !== reading && (await may({ ...request, action: reading }))) throw refusal(request);
      throw missing;
    },
    permitted,
    async page(read, toRequest) {
      let { items, next_cursor, total } = await read({});
      if (hook === undefined) return { items, next_cursor, total };
      let visible = await permitted(items, toRequest);
      let ahead = next_cursor;
      let asked = 0;
      for (let pages = 0; ahead !== undefined && pages < lookAhead.pages; pages += 1) {
        if (asked >= lookAhead.items) break;
        const isEmpty = visible.length === 0;
        const following = await read({ cursor: ahead, ...(isEmpty ? {} : { limit: lookAhead.limit }) });
        const found = await permitted(following.items, toRequest);
        asked += following.items.length;
        ahead = following.next_cursor;
        if (isEmpty) {
          visible = found;
          next_cursor = ahead;
        } else if (found.length > 0) return { items: visible, next_cursor };
      }
      return { items: visible, next_cursor: ahead === undefined ? undefined : next_cursor };
    },
    whilePermitted(request) {
      let askedAt = performance.now();
      return async () => {
        const now = performance.now();
        if (hook === undefined || now - askedAt < permissionMs) return;
        await check(request);
        askedAt = now;
      };
    },
  };
}

function refusal({ action }: AuthorizeRequest): KitError {
  return new KitError({
    code: "forbidden",
    message: `server.authorize does not allow you the action ${action}.`,
  });
}

/** Creates a guard that refuses requests for specs or guidelines of senders that are not permitted to read the project. */
export function guardProject({ check }: Authorization): (request: RouteRequest) => Promise<void> {
  return ({ principal }) => check({ principal, action: "project.read" });
}

/** A function of the configuration, `auth` or `authorize`. */
interface AskedHook {
  /** The key of the function in the configuration. */
  readonly name: string;
  /** The time limit. */
  readonly timeoutMs: number;
}

/**
 * Waits for a hook's answer, with a time limit: otherwise a hook that never answers would hold its request, or the
 * connection of a WebSocket's handshake, forever. Throws the hook's error, or an `Error` at the limit. Both refuse the
 * request as internal errors, which the operator sees.
 */
export async function answerInTime<Answer>(
  answer: Answer | Promise<Answer>,
  { name, timeoutMs }: AskedHook,
): Promise<Answer> {
  // Most hooks answer at once and need no timer.
  if (!(answer instanceof Promise)) return answer;
  return await withDeadline(answer, {
    ms: timeoutMs,
    onTimeout: () => new Error(`${name} did not answer within ${timeoutMs} ms.`),
  });
}
