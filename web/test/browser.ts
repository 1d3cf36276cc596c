// Chromium for tests: the system's own, as root too, with nothing that calls home.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'

/** skerry is the binary under test. */
export const skerry = process.env['SKERRY'] ?? fileURLToPath(new URL('../../bin/skerry', import.meta.url))

function executable(): string {
  const given = process.env['CHROMIUM']
  if (given) return given
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
      if (existsSync(join(folder, name))) return join(folder, name)
    }
  }
  throw new Error('no Chromium: scripts/setup.sh test installs it, or set CHROMIUM')
}

/** launch starts Chromium. */
export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: executable(),
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
    timeout: 60_000,
  })
}

/** Watched is a page with what went wrong on it, and what it asked for beside itself. */
export interface Watched { page: Page; errors: string[]; requests: string[] }

/** watch opens a page that notes errors and requests. */
export async function watch(browser: Browser, options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1300, height: 900 }, ...options })
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const w: Watched = { page, errors: [], requests: [] }
  page.on('console', (m) => {
    if (m.type() === 'error' || m.type() === 'warning') w.errors.push(m.text())
  })
  page.on('pageerror', (e) => w.errors.push(e.message))
  page.on('request', (r) => w.requests.push(r.url()))
  return w
}

/** scratch is a folder that remove takes away. */
export function scratch(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'skerry-web-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** run runs skerry and returns what it printed. */
export function run(...args: string[]): string {
  return execFileSync(skerry, args, { encoding: 'utf8', timeout: 110_000 })
}
