// npm run bench: how long the report of a hundred trials of ten minutes takes from opening to
// interactive, in headless Chromium; five times. It needs Go, and npm run build.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { chromium } from 'playwright-core'

const folder = mkdtempSync(join(tmpdir(), 'skerry-bench-'))
try {
  execFileSync('go', ['test', '-run', '^$', '-bench', 'Report', '-benchtime', '1x', './internal/report/webdata'],
    { cwd: fileURLToPath(new URL('../..', import.meta.url)), env: { ...process.env, SKERRY_BENCH: folder }, stdio: 'inherit' })
  const file = join(folder, 'report.html')
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-quic'] })
  const times = []
  for (let i = 0; i < 5; i++) {
    const page = await browser.newPage({ viewport: { width: 1300, height: 900 } })
    // The page marks itself when the first trial is drawn and every control works.
    await page.addInitScript(() => {
      new MutationObserver((_, o) => {
        if (document.documentElement?.dataset.ready) {
          o.disconnect()
          requestAnimationFrame(() => setTimeout(() => { window.readyAt = performance.now() }))
        }
      }).observe(document, { attributes: true, subtree: true, childList: true })
    })
    await page.goto(pathToFileURL(file).href)
    await page.waitForFunction(() => window.readyAt, undefined, { timeout: 120_000 })
    times.push(await page.evaluate(() => window.readyAt))
    await page.close()
  }
  await browser.close()
  times.sort((a, b) => a - b)
  console.log(`report of ${(statSync(file).size / 1e6).toFixed(2)} MB: interactive after ${times.map((t) => t.toFixed(0)).join(', ')} ms, median ${times[2].toFixed(0)} ms`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
