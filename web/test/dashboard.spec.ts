// The dashboard in a real browser: a run that goes on, an event fired into it, who may look.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFailed, test } from 'vitest'
import { launch, needs, run, scratch, serious, start, stop, stopAll, watch, written } from './browser'

const token = 'a-token-of-a-test-0123'
const hostile = '<img src=x onerror=alert(1)>'
const quickstart = fileURLToPath(new URL('../../experiments/quickstart.yaml', import.meta.url))
const folder = scratch()
const runs = join(folder.path, 'runs')
let browser: Browser
beforeAll(async () => {
  mkdirSync(join(runs, 'damaged'), { recursive: true })
  writeFileSync(join(runs, 'damaged', 'run.json'), '{"schema": "skerry/run/v1", "na')
  mkdirSync(join(runs, `hostile ${hostile.replaceAll('/', '')}`))
  writeFileSync(join(runs, `hostile ${hostile.replaceAll('/', '')}`, 'run.json'),
    JSON.stringify({ schema: 'skerry/run/v1', name: hostile, description: hostile, started: '2026-01-01T00:00:00Z', plan: [] }))
  browser = await launch()
})

afterEach(stopAll)

afterAll(async () => {
  await browser?.close()
  folder.remove()
})

describe('an experiment', () => {
  test('is made by form, checked as it is typed, and saved as a file that validate takes', async () => {
    const cwd = process.cwd()
    process.chdir(folder.path) // where it is saved
    const p = await start(folder.path, ['serve', runs, '--listen', '127.0.0.1:0']).finally(() => process.chdir(cwd))
    const { page, errors } = await watch(browser)
    await page.goto(`${p.url}#/new`)
    await page.waitForSelector('.note.fine >> text=1 trial')
    await page.fill('#new-name', 'of-a-form')
    await page.fill('#new-scales', '0.2, 1')
    await page.click('text=Add event')
    await page.selectOption('select[aria-label="Event 1"]', { label: 'Kill the database' })
    await page.selectOption('[aria-label="Target of event 1"]', 'Pune')
    await written(page, /kill: \{nodes: \[Pune\]\}/)
    await page.waitForSelector('.note.fine >> text=2 trials')
    expect(await serious(page)).toEqual([])
    expect(await page.evaluate(() => { // what is clicked in the same moment must not save the file of the answers before
      const save = [...document.querySelectorAll<HTMLButtonElement>('button')].find((b) => b.textContent === 'Save')!
      const was = save.disabled
      document.querySelector('#new-name')!.dispatchEvent(new Event('input'))
      return [was, save.disabled]
    })).toEqual([false, true])
    await page.waitForSelector('button:enabled >> text=Save')
    const valid = await page.inputValue('#yaml')
    await page.fill('#yaml', `${valid}scael: 2\n`)
    await page.waitForSelector('.wrong >> text=scale')
    expect(await page.isDisabled('text=Save')).toBe(true)
    expect(await serious(page)).toEqual([])
    await page.click('.wrong button')
    expect(await page.evaluate(
      () => { const t = document.querySelector<HTMLTextAreaElement>('#yaml')!; return t.value.slice(t.selectionStart,
      t.selectionEnd) })).toContain('scael')
    await page.click('text=Discard manual changes')
    await page.waitForSelector('.note.fine >> text=2 trials')
    await page.click('text=Save')
    await page.waitForSelector('text=Saved. Continue with')
    expect(run('validate', join(folder.path, 'of-a-form.yaml'))).toContain('2 trials')
    expect(errors).toEqual([])
    await page.context().close()
  })
})

describe('needs', () => {
  test('are made by form, with who would be raced, and saved as a file that choose takes', async () => {
    const cwd = process.cwd()
    process.chdir(folder.path)
    const p = await start(folder.path, ['serve', runs, '--listen', '127.0.0.1:0'], { SKERRY_DATA: '' }).finally(() => process.chdir(cwd))
    const { page, errors } = await watch(browser)
    await page.goto(`${p.url}#/choose`)
    await page.waitForSelector('#need-clients option >> nth=7', { state: 'attached' })
    await page.fill('#need-consider', 'redis')
    await page.selectOption('#day-kind', { label: 'A site is unreachable' })
    await page.selectOption('#day-whom', 'Pune')
    await page.click('text=Add')
    await written(page, /- site_lost: Pune\n[^]*consider: \[redis\]/)
    await page.waitForSelector('.note.fine')
    expect(await page.textContent('.listed')).toContain('redis, one copy')
    expect(await page.textContent('.choices')).toContain('None yet')
    expect(await serious(page)).toEqual([])
    await page.click('text=Save')
    await page.waitForSelector('text=Saved. Continue with')
    expect(readFileSync(join(folder.path, 'needs.yaml'), 'utf8')).toContain('consider: [redis]')
    expect(errors).toEqual([])
    await page.context().close()
  })
})

describe('runs that have ended', () => {
  test('are listed, searched and noted; names are text', async () => {
    const p = await start(folder.path, ['serve', runs, '--listen', '127.0.0.1:0'])
    const { page, errors } = await watch(browser)
    await page.goto(p.url)
    await page.waitForSelector('table.runs tbody tr')
    expect(await page.$$('table.runs tbody tr')).toHaveLength(2)
    expect(await page.textContent('table.runs')).toContain(hostile)
    expect(await page.textContent('table.runs')).toContain('unreadable')
    expect(await page.$('main img')).toBeNull()
    expect(await serious(page)).toEqual([])
    await page.click('text=' + hostile)
    await page.fill('#note', 'a <b>slow</b> disk')
    await page.fill('#tags', 'baseline, ')
    await page.click('text=Save')
    await page.waitForSelector('text=Saved.')
    expect(await serious(page)).toEqual([])
    await page.goto(`${p.url}#/runs`)
    await page.waitForSelector('.tags button')
    await page.fill('input[type=search]', 'slow')
    await page.waitForFunction(() => document.querySelectorAll('table.runs tbody tr').length === 1)
    await page.fill('input[type=search]', '')
    await page.click('.tags button')
    await page.waitForFunction(() => document.querySelectorAll('table.runs tbody tr').length === 1)
    expect(errors).toEqual([])
    await page.context().close()
  })

  test('of a public address are shown to those with the token', async () => {
    const refused = await start(folder.path, ['serve', runs, '--listen', '0.0.0.0:0'], { SKERRY_TOKEN: '' }).catch((e: Error) => e.message)
    expect(refused).toContain('SKERRY_TOKEN')
    const p = await start(folder.path, ['serve', runs, '--listen', '0.0.0.0:0'], { SKERRY_TOKEN: token })
    const { page } = await watch(browser)
    await page.goto(p.url)
    expect(page.url()).toContain('/login')
    expect(await page.$('table.runs')).toBeNull()
    expect(await serious(page)).toEqual([])
    await page.fill('#token', 'not it')
    await page.click('button')
    await page.waitForSelector('.wrong')
    await page.fill('#token', token)
    await page.click('button')
    await page.waitForSelector('table.runs tbody tr')
    expect((await fetch(`${p.url}api/runs`)).status).toBe(401)
    expect((await fetch(`${p.url}api/runs`, { headers: { Authorization: `Bearer ${token}` } })).status).toBe(200)
    await page.context().close()
  })
})

describe('a run that goes on', () => {
  const why = needs()
  test.skipIf(why !== '')(`is followed, a link of it is cut, and its goodput dips${why && ` (${why})`}`, async () => {
    const p = await start(folder.path,
      ['run', quickstart, '--ui', '--out', runs, '--set', 'matrix.workload=[a]', '--set', 'matrix.scale=[0.2]',
      '--set', 'workload.records=200', '--set', 'warmup=0s', '--set', 'stop.time=10m']) // until it is stopped
    onTestFailed(() => console.log(p.said()))
    const { page, errors } = await watch(browser)
    await page.goto(`${p.url}#/live`)
    await page.waitForSelector('.livemap .place')
    await page.waitForFunction(() => !document.querySelector<HTMLButtonElement>('.firing button')?.disabled)
    const goodput = () => page.textContent('.figure .value').then((v) => Number((v ?? '').replace(/[^\d.]/g, '')))
    await expect.poll(goodput, { timeout: 60_000 }).toBeGreaterThan(100)
    await page.waitForFunction(() => document.querySelectorAll('table.nodes tbody tr').length > 8
      && document.querySelectorAll('figure.chart svg path').length > 10)
    const before = await goodput()
    expect(await serious(page)).toEqual([])

    // The address alone leads to the run that goes on.
    const home = await watch(browser)
    await home.page.goto(p.url)
    await home.page.waitForSelector('.livemap .place')
    await home.page.context().close()

    // Another site's page asks the browser to do the same, and is refused.
    const name = readdirSync(runs).find((n) => n.endsWith('-quickstart'))!
    const other = await stranger(p.url, name)
    const evil = await watch(browser)
    await evil.page.goto(`http://localhost:${(other.address() as AddressInfo).port}/`)
    await expect.poll(() => evil.page.title(), { timeout: 60_000 }).toBe('done')
    expect(await evil.page.evaluate(() => (globalThis as unknown as { read: string }).read)).toBe('refused')
    await evil.page.context().close()
    other.close()
    expect(await page.$$('.events .badge')).toHaveLength(0)

    // All links of the client's site: every operation that leaves it waits.
    await page.selectOption('#fire-what', { label: 'Cut nodes off' })
    await page.selectOption('#fire-whom', { label: 'Singapore' })
    await page.fill('#fire-for', '')
    const asked = Date.now()
    await page.click('.firing button')
    await page.waitForFunction(() => [...document.querySelectorAll('.livemap .rtt')].some((e) => e.textContent === 'cut'))
    const seen = Date.now() - asked
    await page.waitForSelector('.events >> text=by hand')
    await expect.poll(goodput, { timeout: 60_000 }).toBeLessThan(before / 2)
    console.log(`from the click to the picture: ${seen} ms`)

    await page.reload() // as a browser that comes back: all of it is there again
    await page.waitForSelector('.events >> text=by hand')
    expect(errors).toEqual([])
    await page.context().close()
    await stop(p)
    const last = readFileSync(join(runs, name, 'trials', '1', 'events.jsonl'), 'utf8').trim().split('\n').at(-1)!
    expect(JSON.parse(last)).toMatchObject({ kind: 'link_down', source: 'ui', entry: -1, state: 'reverted' })
  }, 300_000)
})

/** stranger is another site, whose page tries to fire an event and to read the list. */
async function stranger(dashboard: string, run: string): Promise<Server> {
  const page = `<!doctype html><title>trying</title><script>
    (async () => {
      await fetch('${dashboard}api/runs/${run}/events', {
        method: 'POST', mode: 'no-cors', credentials: 'include', body: '{"link_down": {"of": "Singapore"}}',
      }).catch(() => {})
      window.read = await fetch('${dashboard}api/runs').then((r) => r.text(), () => 'refused')
      document.title = 'done'
    })()
  </script>`
  const server = createServer((_, answer) => {
    answer.setHeader('Content-Type', 'text/html')
    answer.end(page)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}
