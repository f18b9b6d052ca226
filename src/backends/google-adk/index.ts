/** `kit/backends/google-adk`: agents of Google's Agent Development Kit decide what agents do; kit calls the model, runs tools, stores and streams. */
import "../../base/require-node.ts";

export {
  type GoogleAdkAgent,
  type GoogleAdkOptions,
  type GoogleAdkWork,
  googleAdk,
} from "./google-adk.ts";
