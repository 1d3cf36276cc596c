import { defineConfig } from 'vitest/config'

// Tests in a real browser: ../bin/skerry, ../bin/hydra and Chromium must be there.
export default defineConfig({
  test: {
    environment: 'node',
    include: ['test/**/*.spec.ts'],
    testTimeout: 900_000, // a machine whose host starves it takes ten times as long as a quiet one
    hookTimeout: 900_000,
    maxWorkers: 2, // files wait for runs and pages most of the time; each has a state and a browser of its own
    minWorkers: 1,
  },
})
