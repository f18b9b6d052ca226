import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** The server of kit: `main.ts` sets it. */
const kit = process.env.KIT_URL ?? "http://127.0.0.1:2024";

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  // The page and its agent have one address, as behind a proxy of yours. kit compares the origin of the page with the host of the request.
  server: { proxy: Object.fromEntries(["/agents", "/v1"].map((path) => [path, { target: kit }])) },
  optimizeDeps: { include: ["@ai-sdk/react", "ai", "react", "react-dom/client"] },
});
