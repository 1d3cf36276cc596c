import { defineConfig } from 'vitest/config'

// Tests in a real browser: ../bin/skerry and Chromium must be there.
export default defineConfig({
  test: {
    environment: 'node',
    include: ['test/**/*.spec.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    fileParallelism: false,
  },
})
