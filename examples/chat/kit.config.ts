import { defineConfig } from "kit";

// An endpoint that speaks OpenAI's chat completions; the demo and the tests put their script here. Without it, the
// model is one of the provider whose key is set.
const { MODEL_URL } = process.env;

export default defineConfig({
  agent: { max_turns: 10, ...(MODEL_URL === undefined ? {} : { model: "endpoint/support" }) },
  ...(MODEL_URL === undefined ? {} : { providers: { endpoint: { base_url: MODEL_URL } } }),
});
