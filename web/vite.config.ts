import { defineConfig } from "vite";

// One classic script with everything inside: the report opens from a disk, where modules do not load.
export default defineConfig({
  build: {
    outDir: process.env.HOLDFAST_PAGE_FOLDER ?? "dist",
    emptyOutDir: false,
    lib: { entry: "src/main.ts", formats: ["iife"], name: "holdfast", fileName: () => "report.js" },
    chunkSizeWarningLimit: 4000,
  },
  logLevel: "warn",
});
