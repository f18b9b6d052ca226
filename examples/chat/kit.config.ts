import { defineConfig } from "kit";

// An endpoint with OpenAI's chat completions API; the demo and the tests use it for their script. Without it, the
// model is one of the provider whose key is set.
const { MODEL_URL } = process.env;

export default defineConfig({
  agent: { max_turns: 10, ...(MODEL_URL === undefined ? {} : { model: "endpoint/support" }) },
  ...(MODEL_URL === undefined ? {} : { providers: { endpoint: { base_url: MODEL_URL } } }),
});
