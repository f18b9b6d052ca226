import type { ReactNode } from "react";
import type { KitClient } from "../../../../src/client/index.ts";
import { isReadOnly } from "../../api/server.ts";
import { useServer } from "../../api/use-server.ts";
import { Notice } from "../../ui/states.tsx";
import { visible } from "../../ui/text.ts";

/** How many blocks are read to find a file that a spec names. */
const blockCount = 50;

/** Three questions about what the project has. */
async function findQuestions(client: KitClient, signal: AbortSignal): Promise<readonly string[]> {
  const options = { signal };
  const [specs, features, rules] = await Promise.all([
    client.specs.list({ limit: blockCount }, options),
    client.specs.features({ limit: 1 }, options),
    client.guidelines.list({ limit: 1 }, options),
  ]);
  const file = specs.specs.flatMap(({ metadata }) => metadata.code_refs ?? [])[0];
  const feature = features.features[0]?.name;
  return [
    ...(rules.total_count > 0
      ? [file === undefined ? "Which rules does this project have?" : `Which rules apply to ${file}?`]
      : []),
    ...(feature === undefined
      ? []
      : [`What does the spec ${feature} ask for?`, "Which acceptance criteria have no test yet?"]),
    "What can you do for me?",
    "What is this project about?",
    "Where do I begin?",
  ].slice(0, 3);
}

/** An empty conversation: what it is, and questions that one click asks. */
export function Starters({
  agent,
  id,
  onAsk,
}: {
  readonly agent: string;
  readonly id: string;
  readonly onAsk: (question: string) => void;
}): ReactNode {
  const questions = useServer({ key: ["starters"], ask: findQuestions, enabled: !isReadOnly });
  return (
    <Notice icon="agents" title={`Nothing was said to ${agent} here yet`}>
      <p>
        Write a message below. The conversation is kept under the id <code className="font-mono">{id}</code>.
      </p>
      {isReadOnly ? null : (
        <ul className="mt-4 flex min-h-32 flex-col gap-2">
          {(questions.data ?? []).map((question) => (
            <li key={question}>
              <button
                type="button"
                onClick={() => onAsk(question)}
                className="w-full rounded-lg border border-line bg-panel px-3 py-2 text-left text-ink text-sm hover:bg-raised foreign"
              >
                {visible(question)}
              </button>
            </li>
          ))}
        </ul>
      )}
    </Notice>
  );
}
