import { defineConfig } from 'vite'

// The dashboard: files with relative addresses that skerry serves from the binary.
export default defineConfig({
  base: './',
  logLevel: 'warn',
  build: {
    outDir: 'dist/dashboard',
    emptyOutDir: true,
    target: 'es2022',
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000,
    rollupOptions: { input: 'dashboard.html' },
  },
})
