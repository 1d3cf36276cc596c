// Chromium for tests: the system's own, as root too, with nothing that calls home.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import AxeBuilder from '@axe-core/playwright'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'

/** skerry is the binary under test. */
export const skerry = process.env['SKERRY'] ?? fileURLToPath(new URL('../../bin/skerry', import.meta.url))

/** hydra is the program of Hydra, next to it. */
export const hydra = join(dirname(skerry), 'hydra')

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
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
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
    if (m.type() === 'error' || m.type() === 'warning') w.errors.push(`${m.text()} (${m.location().url})`)
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
  return execFileSync(skerry, args, { encoding: 'utf8', timeout: 600_000, stdio: ['ignore', 'pipe', 'pipe'] })
}

/** serious are axe's findings that keep somebody from using the page. */
export async function serious(page: Page): Promise<string[]> {
  const found = await new AxeBuilder({ page }).analyze()
  return found.violations.filter((v) => v.impact === 'serious' || v.impact === 'critical').map((v) =>
    `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(' | ')}`)
}

/**
 * written waits until the file that a form makes says so. The form asks the server for it, so that what stands
 * there beside a verdict may still be the answer to the field before.
 */
export async function written(page: Page, says: RegExp): Promise<void> {
  await page.waitForFunction((says) => says.test(document.querySelector<HTMLTextAreaElement>('#yaml')?.value ?? ''), says)
}

/** Process is a skerry that prints where its dashboard is. */
export interface Process { child: ChildProcess; url: string; said(): string; ended: Promise<number | null> }

const started: Process[] = []

/** start runs skerry, which keeps its things in a folder, until its dashboard answers. */
export async function start(home: string, args: string[], env: Record<string, string> = {}): Promise<Process> {
  const child = spawn(skerry, ['--state-dir', join(home, 'state'), ...args],
    { env: { ...process.env, SKERRY_DATA: join(home, 'data'), ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  const ended = new Promise<number | null>((resolve) => child.on('close', (code) => resolve(code)))
  const url = await new Promise<string>((resolve, reject) => {
    const hear = (b: Buffer) => {
      said += b.toString()
      const found = /dashboard: (http:[^#\s]+)/.exec(said)
      if (found) resolve(found[1]!)
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    void ended.then((code) => reject(new Error(`skerry ended with ${code}: ${said}`)))
  })
  const p = { child, url, said: () => said, ended }
  started.push(p)
  return p
}

export async function stop(p: Process): Promise<void> {
  if (p.child.exitCode === null) p.child.kill('SIGINT')
  await p.ended
}

/** stopAll ends what was started. */
export async function stopAll(): Promise<void> {
  for (const p of started.splice(0)) await stop(p)
}

/** needs says why labs cannot be tested here, as testkit does. */
export function needs(): string {
  const missing = process.getuid?.() !== 0 ? 'root' : !existsSync('/dev/net/tun') ? 'tun' : ''
  if (missing && (process.env['SKERRY_REQUIRE'] ?? '').split(',').includes(missing)) throw new Error(
    `needs ${missing}, which SKERRY_REQUIRE lists as installed`)
  return missing && `needs ${missing}`
}
