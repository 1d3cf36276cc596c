// Every page as its readers see it: on a desk's screen and on a phone's, light and dark. `make pictures`
// has the same pages show the runs that the documentation tells of (SKERRY_RUNS), and keeps what it saw (SKERRY_SCREENS).
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFailed, test } from 'vitest'
import { launch, needs, run, scratch, serious, start, stopAll, watch } from './browser'

const root = fileURLToPath(new URL('../../', import.meta.url))
const screens = process.env['SKERRY_SCREENS'] // where pictures go; without it nothing is kept
const given = process.env['SKERRY_RUNS']
const folder = scratch()
const runs = join(folder.path, 'runs')
const sizes = [{ width: 1400, height: 1000 }, { width: 390, height: 844 }]
const colours = ['light', 'dark'] as const
let browser: Browser

/** material are the runs that are shown: those that are given, else a stored one twice. */
function material(): void {
  if (given) {
    cpSync(given, runs, { recursive: true, verbatimSymlinks: true })
    return
  }
  const stored = join(root, 'internal/report/webdata/testdata/two-distances')
  for (const day of ['01', '02']) {
    const name = `202611${day}-120000-two-distances`
    cpSync(stored, join(runs, name), { recursive: true })
    const summary = join(runs, name, 'summary.json') // names its run
    writeFileSync(summary, readFileSync(summary, 'utf8').replaceAll('20261122-035523-two-distances', name))
    const record = join(runs, name, 'run.json')
    writeFileSync(record, readFileSync(record, 'utf8').replace(/"started": *"[^"]*"/, `"started": "2026-11-${day}T12:00:00Z"`))
  }
}

/** shown are the experiments that have a run. */
const shown = given ? ['quickstart', 'offices', 'cut'] : ['two-distances']

beforeAll(async () => {
  material()
  browser = await launch()
})

afterEach(stopAll)

afterAll(async () => {
  await browser?.close()
  folder.remove()
})

/** look holds a page against what every page must be, at each size and in both colours. */
async function look(page: Page, name: string, there: string, at?: string): Promise<void> {
  const found: string[] = []
  for (const size of sizes) {
    await page.setViewportSize(size)
    await page.reload()
    await page.waitForSelector(there)
    for (const colorScheme of colours) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.waitForFunction((dark) => matchMedia('(prefers-color-scheme: dark)').matches === dark, colorScheme === 'dark')
      if (at) await page.locator(at).first().scrollIntoViewIfNeeded()
      const where = `${name}-${size.width}-${colorScheme}`
      if (!at) found.push(...(await serious(page)).map((s) => `${where}: ${s}`)) // axe reads the whole page, wherever it stands
      // Charts take the screen's new width when they hear of it.
      await page.waitForFunction(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth, undefined,
        { timeout: 30_000 })
        .catch(() => found.push(`${where}: the page is wider than the screen`))
      if (screens) {
        await page.screenshot({ path: join(screens, `${where}.png`) })
        if (!at) await page.screenshot({ path: join(screens, 'whole', `${where}.png`), fullPage: true })
      }
    }
  }
  expect(found).toEqual([])
}

/** named is the run directory of an experiment. */
const named = (name: string) => readdirSync(runs).filter((n) => n.endsWith(`-${name}`)).sort().at(-1)!

test.each(shown)('the report of %s', async (name) => {
  const file = join(folder.path, `${name}.html`)
  run('report', join(runs, named(name)), '--out', file)
  const { page, errors } = await watch(browser)
  await page.goto(`${pathToFileURL(file).href}#picture`)
  await page.waitForSelector('html[data-ready]')
  await look(page, `report-${name}`, 'html[data-ready]')
  await page.setViewportSize(sizes[0]!)
  const cut = await page.$$eval('#overview .wide, #fidelity .wide',
    (all) => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.getAttribute('aria-label')))
  expect(cut, 'tables that are wider than a desk has room for').toEqual([])
  await page.setViewportSize({ width: 700, height: 900 }) // a window that is made smaller
  await page.waitForFunction(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth)
  await look(page, `trial-${name}`, 'html[data-ready]', 'figure.chart:has-text("Goodput and errors") .plot')
  expect(errors).toEqual([])
  await page.context().close()
})

// SKERRY_CHOICES are folders of choices whose answers are looked at, as NAME=FOLDER with commas between; without them it is
// the page that the tests of internal/report/choice keep.
const answers = (process.env['SKERRY_CHOICES'] ?? '').split(',').filter(Boolean).map((c) => c.split('=') as [string, string])
test.each(answers.length ? answers : [['made', join(root, 'internal/report/choice/testdata')]] as [string, string][])('the answer %s',
  async (name, from) => {
  const { page, errors, requests } = await watch(browser)
  await page.goto(pathToFileURL(join(from, 'answer.html')).href)
  await look(page, `answer-${name}`, 'h1.answer')
  await page.setViewportSize(sizes[0]!)
  const cut = await page.$$eval('.wide', (all) => all.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.getAttribute('aria-label')))
  expect(cut, 'tables that are wider than a desk has room for').toEqual([])
  const words = await page.$$eval('svg text', (all) => all.filter((e) => {
    const [text, chart] = [e.getBoundingClientRect(), e.closest('svg')!.getBoundingClientRect()]
    return text.left < chart.left - 1 || text.right > chart.right + 1
  }).map((e) => e.textContent))
  expect(words, 'words that the edge of a picture cuts').toEqual([])
  expect(errors).toEqual([])
  expect(requests.filter((r) => !r.startsWith('file:') && !r.startsWith('data:')), 'asked of other machines').toEqual([])
  await page.context().close()
})

describe('the dashboard', () => {
  const pages: [string, () => string, string][] = [
    ['runs', () => '#/runs', 'table.runs tbody tr'],
    ['run', () => `#/run/${named(shown.at(-1)!)}`, '#note'],
    ['new', () => '#/new', '.note.fine >> text=1 trial'],
    ['choose', () => '#/choose', '.listed'],
    ['waiting', () => '#/live', 'text=No experiment is running'],
    ['compare', () => {
      const [a, b] = given ? [named('quickstart'), named('quickstart')] : readdirSync(runs).sort() // of one run, two cells
      return `#/compare/${a}/${b}`
    }, 'main table tbody tr'],
  ]
  test.each(pages)('%s', async (name, address, there) => {
    const p = await start(folder.path, ['serve', runs, '--listen', '127.0.0.1:0'])
    const { page, errors } = await watch(browser)
    await page.goto(p.url + address())
    await page.waitForSelector(there)
    await look(page, name, there)
    expect(errors).toEqual([])
    await page.context().close()
  })

  test.skipIf(given !== undefined)('comparing takes the older run for A, whichever way it was asked', async () => {
    const p = await start(folder.path, ['serve', runs, '--listen', '127.0.0.1:0'])
    const { page } = await watch(browser)
    const [older, newer] = readdirSync(runs).filter((n) => n !== 'latest').sort()
    await page.goto(`${p.url}#/compare/${newer}/${older}`)
    await page.waitForSelector('main table tbody tr')
    expect(await page.inputValue('select[aria-label="Run A"]')).toBe(older)
    expect(await page.textContent('.sides > div:first-child a')).toBe(older)
    await page.context().close()
  })

  test('login', async () => {
    const p = await start(folder.path, ['serve', runs, '--listen', '0.0.0.0:0'], { SKERRY_TOKEN: 'a-token-of-a-test-0123' })
    const { page } = await watch(browser)
    await page.goto(p.url)
    await page.waitForSelector('#token')
    await look(page, 'login', '#token')
    await page.context().close()
  })
})

describe('with a lab', () => {
  const why = needs()
  test.skipIf(why !== '')(`live, with a link that is cut${why && ` (${why})`}`, async () => {
    const p = await start(folder.path, ['run', join(root, 'experiments/quickstart.yaml'), '--ui', '--out', join(folder.path, 'live'),
      '--set', 'matrix.workload=[a]',
      '--set', 'matrix.scale=[0.2]', '--set', 'workload.records=200', '--set', 'warmup=0s', '--set', 'stop.time=10m'])
    onTestFailed(() => console.log(p.said()))
    const { page, errors } = await watch(browser)
    await page.goto(`${p.url}#/live`)
    await page.waitForFunction(() => !document.querySelector<HTMLButtonElement>('.firing button')?.disabled)
    await page.waitForFunction(() => document.querySelectorAll('table.nodes tbody tr').length > 8
      && document.querySelectorAll('figure.chart svg path').length > 10)
    if (given) await expect.poll(() => page.textContent('main'), { timeout: 120_000 }).toMatch(/([2-9]\d|1\d\d) s of|\d:\d\d of 10:00/)
    await page.selectOption('#fire-what', { label: 'Cut links' })
    await page.selectOption('#fire-whom', { label: 'Pune – Seoul' })
    await page.fill('#fire-for', '')
    await page.click('.firing button')
    await page.waitForSelector('.events >> text=by hand')
    await look(page, 'live', '.events >> text=by hand')
    await page.setViewportSize(sizes[0]!)
    await page.evaluate(() => scrollTo(0, 0))
    // The map fills its panel, and its names can be read.
    const map = await page.evaluate(() => {
      const drawing = document.querySelector('.livemap svg')!.getBoundingClientRect()
      const panel = document.querySelector('.livemap')!.getBoundingClientRect()
      const name = document.querySelector('.livemap .name')!.getBoundingClientRect()
      return { filled: drawing.width / panel.width, name: name.height }
    })
    expect(map.filled).toBeGreaterThan(0.95)
    expect(map.name).toBeGreaterThan(11)
    expect(errors).toEqual([])
    await page.context().close()
  })
})

const site = join(root, 'site/dist')
test.skipIf(!existsSync(site))('the site of the documentation, where make site has built it', async () => {
  const server = await serveFiles(site)
  const { page, errors, requests } = await watch(browser)
  for (const [name, path] of [['site', ''], ['site-tutorial', 'tutorial.html'], ['site-results', 'results/index.html'],
    ['site-events', 'events.html']] as const) {
    await page.goto(`http://localhost:${(server.address() as AddressInfo).port}/${path}`)
    await page.waitForSelector('h1')
    await look(page, name, 'h1')
  }
  await page.setViewportSize(sizes[0]!)
  await page.click('button:has-text("Search")')
  await page.fill('#localsearch-input', 'censored')
  await page.waitForSelector('.results a[href*="recovery"]')
  if (screens) await page.screenshot({ path: join(screens, 'site-search-1400.png') })
  expect(errors).toEqual([])
  expect(requests.filter((r) => !r.startsWith('http://localhost:') && !r.startsWith('data:')), 'asked of other machines').toEqual([])
  await page.context().close()
  server.close()
})

/** serveFiles serves a folder over HTTP, as modules ask for. */
async function serveFiles(dir: string): Promise<Server> {
  const kinds: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml',
    '.png': 'image/png', '.woff2': 'font/woff2' }
  const server = createServer((request, answer) => {
    const path = join(dir, decodeURIComponent(new URL(request.url ?? '/', 'http://x').pathname).replace(/\/$/, '/index.html'))
    if (!existsSync(path)) {
      answer.writeHead(404).end()
      return
    }
    answer.setHeader('Content-Type', kinds[extname(path)] ?? 'application/octet-stream')
    answer.end(readFileSync(path))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}
