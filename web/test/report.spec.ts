// The report of a stored run in a real browser, from the file system.
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launch, run, scratch, watch, type Watched } from './browser'

const stored = fileURLToPath(new URL('../../internal/report/webdata/testdata/two-distances', import.meta.url))
const folder = scratch()
const file = join(folder.path, 'report.html')
let browser: Browser

beforeAll(async () => {
  run('report', stored, '--out', file)
  browser = await launch()
})

afterAll(async () => {
  await browser?.close()
  folder.remove()
})

async function open(path = file): Promise<Watched> {
  const w = await watch(browser)
  await w.page.goto(pathToFileURL(path).href + '#picture')
  await w.page.waitForSelector('html[data-ready]')
  return w
}

/** marks counts what is drawn of data: paths, bars, cells, symbols. */
function marks(page: Page): Promise<{ title: string; drawn: number; rows: number }[]> {
  return page.$$eval('figure.chart', (figures) => figures.map((f) => ({
    title: f.querySelector('.title')?.textContent ?? '',
    drawn: f.querySelectorAll('.plot svg path, .plot svg circle, .plot svg line, .plot svg rect').length,
    rows: 0,
  })))
}

describe('the report of a stored run', () => {
  test('asks for nothing beside itself, has no error, and every chart has data', async () => {
    const { page, errors, requests } = await open()
    expect(await page.title()).toBe('two-distances – Skerry report')
    for (const m of await marks(page)) expect(m.drawn, m.title).toBeGreaterThan(3)
    const titles = (await marks(page)).map((m) => m.title)
    for (const t of ['Goodput by scale', 'Goodput and errors', 'Latency', '95th and 99th percentile by operation', 'CPU of the nodes',
      'Memory of the nodes', 'Network of the nodes, received and sent', 'Map of the sites',
      'Latency distribution', 'Latency over time', 'Traffic between nodes', 'Traffic matrix',
      'Round-trip error of each link']) expect(titles).toContain(t)
    // The data behind each chart: all have rows with numbers.
    for (const button of await page.$$('figure.chart .tools button[aria-label^="Data of"]')) {
      await button.evaluate((e) => (e as HTMLButtonElement).click())
      const name = await button.getAttribute('aria-label')
      const numbers = await button.evaluate((e) =>
        [...e.closest('figure')!.querySelectorAll('.data td.num')].filter((c) => c.textContent).length)
      expect(numbers, name ?? '').toBeGreaterThan(0)
    }
    expect(errors).toEqual([])
    expect(requests.filter((u) => !u.startsWith('file:') && !u.startsWith('data:') && !u.startsWith('blob:'))).toEqual([])
    expect(requests.filter((u) => u.startsWith('file:'))).toHaveLength(1)
    await page.context().close()
  })

  test('hovering shows values with their units, and the map follows', async () => {
    const { page } = await open()
    const plot = page.locator('figure.chart', { hasText: 'Goodput and errors' }).locator('.plot')
    await plot.scrollIntoViewIfNeeded()
    const box = (await plot.boundingBox())!
    // 4 s into 15: the link is cut from 3 s to 5 s.
    await page.mouse.move(box.x + 66 + ((box.width - 84) * 5.2) / 15, box.y + box.height / 2)
    const tip = plot.locator('.tip')
    await tip.waitFor()
    expect(await tip.textContent()).toMatch(/ok.*ops\/s/)
    const now = page.locator('.now')
    await expect.poll(() => now.textContent()).toContain('cut')
    await page.context().close()
  })

  test('the keyboard reaches everything and moves along charts', async () => {
    const { page } = await open()
    const plot = page.locator('figure.chart', { hasText: 'Goodput and errors' }).locator('.plot')
    await plot.focus()
    for (let i = 0; i < 6; i++) await page.keyboard.press('ArrowRight')
    await plot.locator('.tip').waitFor()
    expect(await plot.locator('.tip').textContent()).toContain('ops/s')
    const unreachable = await page.$$eval('a[href], button, select, .plot, summary', (all) =>
      all.filter((e) => (e as HTMLElement).tabIndex < 0 && !(e as HTMLButtonElement).disabled).map((e) => e.outerHTML.slice(0, 80)))
    expect(unreachable).toEqual([])
    // From the top, Tab comes to the first heading of a column, and Enter sorts by it.
    const sort = page.locator('#overview .sort').first()
    await sort.focus()
    await page.keyboard.press('Enter')
    expect(await page.locator('#overview th').first().getAttribute('aria-sort')).toMatch(/ending/)
    await page.context().close()
  })

  test('compares, changes trials and saves files', async () => {
    const { page, errors } = await open()
    await page.getByLabel('Show', { exact: true }).selectOption({ label: 'multiples of scale 1' })
    await page.locator('figure.chart .title', { hasText: 'as a multiple of scale 1' }).first().waitFor()
    await page.getByLabel('Trial', { exact: true }).selectOption('3')
    await page.locator('html[data-ready]').waitFor()
    await page.locator('#trial .card table').first().waitFor()
    const [csv] = await Promise.all([page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download CSV of Goodput and errors' }).click()])
    const text = readFileSync((await csv.path())!, 'utf8')
    expect(text.split('\r\n')[0]).toBe('t (s),ok,failed,unknown')
    expect(text.split('\r\n').length).toBeGreaterThan(10)
    const [svg] = await Promise.all([page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download SVG of Map of the sites' }).click()])
    expect(readFileSync((await svg.path())!, 'utf8')).toContain('Frankfurt')
    expect(errors).toEqual([])
    await page.context().close()
  })
})

describe('runs that are not as they should be', () => {
  test('names in an experiment stay text', async () => {
    const dir = join(folder.path, 'hostile')
    cpSync(stored, dir, { recursive: true })
    const evil = '</script><script>alert(1)</script><img src=x onerror=alert(2)>"\'--><!--'
    for (const name of ['run.json', 'summary.json', 'trials/1/topology.json', 'trials/1/events.jsonl']) {
      const path = join(dir, name)
      const text = readFileSync(path, 'utf8')
      const at = JSON.stringify(evil).slice(1, -1)
      writeFileSync(path, text.replaceAll('Frankfurt', at).replaceAll('two-distances', at).replaceAll('"lost"', `"${at}"`))
    }
    const out = join(folder.path, 'hostile.html')
    run('report', dir, '--out', out)
    const w = await watch(browser)
    let alerts = 0
    w.page.on('dialog', (d) => {
      alerts++
      void d.dismiss()
    })
    await w.page.goto(pathToFileURL(out).href + '#picture')
    await w.page.waitForSelector('html[data-ready]')
    const plot = w.page.locator('figure.chart', { hasText: 'Goodput and errors' }).locator('.plot')
    await plot.hover()
    await w.page.locator('.plot.map').hover()
    expect(await w.page.locator('h1').textContent()).toBe(evil)
    expect(await w.page.$$eval('img', (all) => all.length)).toBe(0)
    expect(alerts).toBe(0)
    expect(w.errors).toEqual([])
    await w.page.context().close()
  })

  test('short jobs beside the workload have a panel with the events behind it', async () => {
    const dir = join(folder.path, 'probes')
    cpSync(stored, dir, { recursive: true })
    const path = join(dir, 'summary.json')
    const summary = JSON.parse(readFileSync(path, 'utf8')) as { trials: { id: number; probes?: unknown[] }[] }
    const job = (t: number, read: number) =>
      ({ t, duration_s: 0.1, operations: { READ: { count: 100, failed: 0, service_us: { p95: read }, response_us: {} } } })
    summary.trials[0]!.probes = [job(0, 600), job(5, 900), job(10, 650), { t: 12, duration_s: 0, operations: {}, error: 'refused' }]
    writeFileSync(path, JSON.stringify(summary))
    const out = join(folder.path, 'probes.html')
    run('report', dir, '--out', out)
    const { page, errors } = await open(out)
    await page.getByLabel('Trial', { exact: true }).selectOption(String(summary.trials[0]!.id))
    const figure = page.locator('figure.chart', { hasText: 'Probes: 95th percentile of each short job' })
    await figure.scrollIntoViewIfNeeded()
    expect(await figure.locator('.title').textContent()).toContain('1 of 4 failed')
    await figure.locator('button[aria-label^="Data of"]').click()
    expect(await figure.locator('.data td.num').allTextContents()).toEqual(expect.arrayContaining(['600', '900', '650']))
    await expect.poll(() => figure.locator('.plot').textContent()).toContain('cut') // an event's name
    expect(errors).toEqual([])
    await page.context().close()
  })

  test('a run that is cut short still has a report that says so', async () => {
    const dir = join(folder.path, 'short')
    cpSync(stored, dir, { recursive: true })
    const path = join(dir, 'trials/1/timeline.parquet')
    writeFileSync(path, readFileSync(path).subarray(0, 700))
    const summary = JSON.parse(readFileSync(join(dir, 'summary.json'), 'utf8')) as { trials: unknown[] }
    summary.trials = summary.trials.slice(0, 2)
    writeFileSync(join(dir, 'summary.json'), JSON.stringify(summary))
    for (const id of [3, 4]) cpSync(join(dir, `trials/${id}`), join(dir, `trials/${id}.partial`), { recursive: true })
    for (const id of [3, 4]) rmSync(join(dir, `trials/${id}`), { recursive: true })
    const out = join(folder.path, 'short.html')
    run('report', dir, '--out', out)
    const { page, errors } = await open(out)
    expect(await page.locator('.note.bad').first().textContent()).toContain('interrupted')
    await page.getByLabel('Trial', { exact: true }).selectOption('1')
    await page.locator('#trial .note', { hasText: 'Unreadable data' }).waitFor()
    expect(errors).toEqual([])
    await page.context().close()
  })
})

test('the page of skerry compare asks for nothing beside itself, and draws the CPU use of both sides', async () => {
  const path = join(folder.path, 'comparison.html')
  run('compare', `${stored}:1`, `${stored}:2`, '--html', path)
  const { page, errors, requests } = await open(path)
  expect(await page.title()).toBe('Comparison – Skerry')
  expect((await marks(page)).map((m) => m.title)).toEqual(['CPU of the data nodes', 'Distribution of CPU use'])
  for (const m of await marks(page)) expect(m.drawn, m.title).toBeGreaterThan(3)
  expect(await page.locator('table.metrics tbody tr').count()).toBeGreaterThan(5)
  expect([errors, requests.filter((r) => !r.startsWith('file:') && !r.startsWith('data:'))]).toEqual([[], []])
})
