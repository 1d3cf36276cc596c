import { defineConfig } from 'vite'
import { viteSingleFile } from 'vite-plugin-singlefile'

// The report: one HTML file with script and style inside, into which Go puts a run's data.
export default defineConfig({
  plugins: [viteSingleFile()],
  logLevel: 'warn',
  build: {
    outDir: 'dist/report',
    emptyOutDir: true,
    target: 'es2022',
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000,
    rollupOptions: { input: 'report.html' },
  },
})
