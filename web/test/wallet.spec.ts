// The wallet in a real browser, by its name and through a load balancer, while a cloud is
// killed and returns.
import { spawn, type ChildProcess } from 'node:child_process'
import { Resolver } from 'node:dns'
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import AxeBuilder from '@axe-core/playwright'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hydra, launch, watch } from './browser'

const patience = { timeout: 120_000, interval: 200 }

interface Service { name: string; kind: string; cloud?: string; address: string; url?: string; pid: number; running: boolean }
interface Deployment { zone: string; dns: string; services: Service[] }

/** Proxy takes a browser's requests to where the deployment's own DNS server says, and
 * tries another address of the answer when nothing listens at one, as browsers do. */
class Proxy {
  readonly server: Server
  private readonly resolver = new Resolver({ timeout: 2000, tries: 3 })
  private kept: { addresses: string[]; until: number } = { addresses: [], until: 0 }

  constructor(dns: string) {
    this.resolver.setServers([dns])
    this.server = createServer((from, to) => void this.pass(from, to))
  }

  async listen(): Promise<string> {
    await new Promise<void>((done) => this.server.listen(0, '127.0.0.1', done))
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  /** lookup keeps an answer for as long as it may be kept. */
  async lookup(name: string): Promise<string[]> {
    if (Date.now() > this.kept.until) {
      const records = await new Promise<{ address: string; ttl: number }[]>((resolve, reject) => {
        this.resolver.resolve4(name, { ttl: true }, (err, found) => (err ? reject(err) : resolve(found)))
      })
      this.kept = { addresses: records.map((r) => r.address), until: Date.now() + 1000 * Math.min(...records.map((r) => r.ttl)) }
    }
    return this.kept.addresses
  }

  private async pass(from: IncomingMessage, to: ServerResponse): Promise<void> {
    const url = new URL(from.url ?? '')
    const parts: Buffer[] = []
    for await (const part of from) parts.push(part as Buffer)
    const addresses = await this.lookup(url.hostname).catch(() => [])
    for (const host of addresses) {
      const headers = { ...from.headers, host: url.host, connection: 'close' }
      const done = await new Promise<boolean>((resolve) => {
        const out = request({ host, port: url.port, method: from.method, path: url.pathname + url.search, headers, agent: false },
          (answer) => {
          to.writeHead(answer.statusCode ?? 502, answer.headers)
          answer.pipe(to)
          answer.on('end', () => resolve(true))
          answer.on('error', () => { to.destroy(); resolve(true) })
        })
        out.on('error', (err: NodeJS.ErrnoException) => {
          if (err.code === 'ECONNREFUSED') return resolve(false) // nothing was sent
          to.destroy()
          resolve(true)
        })
        out.end(Buffer.concat(parts))
      })
      if (done) return
    }
    to.destroy()
  }
}

let child: ChildProcess
let ended: Promise<number | null>
let said = ''
let deployment: Deployment
let proxy: Proxy
let browser: Browser

beforeAll(async () => {
  child = spawn(hydra, ['dev', '--json', '--prefer', 'aws', '--restart', '8s'], { stdio: ['ignore', 'pipe', 'pipe'] })
  ended = new Promise((resolve) => child.on('close', resolve))
  let printed = ''
  deployment = await new Promise<Deployment>((resolve, reject) => {
    child.stdout!.on('data', (b: Buffer) => {
      printed += b.toString()
      if (printed.trimEnd().endsWith('\n}')) resolve(JSON.parse(printed) as Deployment)
    })
    child.stderr!.on('data', (b: Buffer) => (said += b.toString()))
    void ended.then((code) => reject(new Error(`hydra ended with ${code}: ${said}`)))
  })
  proxy = new Proxy(deployment.dns)
  browser = await launch()
})

afterAll(async () => {
  await browser?.close()
  proxy?.server.close()
  child?.kill('SIGINT')
  await ended
})

/** kill ends processes as the loss of their machines does. */
function kill(which: (s: Service) => boolean): void {
  for (const s of deployment.services.filter(which)) process.kill(s.pid, 'SIGKILL')
}

async function order(page: Page, legend: string, fields: Record<string, string>): Promise<void> {
  const form = page.locator('form').filter({ has: page.locator('legend', { hasText: new RegExp(`^${legend}$`) }) })
  for (const [name, value] of Object.entries(fields)) {
    const field = form.locator(`[name="${name}"]`)
    if ((await field.evaluate((e) => e.tagName)) === 'SELECT') await field.selectOption(value)
    else await field.fill(value)
  }
  await form.getByRole('button').click()
}

/** done waits until the page says that an order is done. */
async function done(page: Page, what: string): Promise<string> {
  await expect.poll(() => page.locator('#status').textContent(), patience).toMatch(new RegExp(`^${what} is done`))
  return (await page.locator('#status').textContent()) ?? ''
}

/** balance is what the page shows of an account. */
const balance = (page: Page, account: string) => page.locator(`#accounts tr[data-account="${account}"] .money`).textContent()

interface Sum { sum: { holds: boolean; total_cents: number; accounts: number } }
interface Accounts { accounts: { name: string; balance_cents: number }[] }
interface History { entries: { id: string; amount_cents: number; kind: string }[] }

async function get<T>(service: string, path: string): Promise<T> {
  const at = deployment.services.find((s) => s.name === service)
  const answer = await fetch(at!.url + path)
  if (!answer.ok) throw new Error(`${service}${path}: ${answer.status}`)
  return (await answer.json()) as T
}

describe('the wallet', () => {
  test('loses, doubles and halves nothing while a cloud is killed and returns', async () => {
    const { page, errors, requests } = await watch(browser, { proxy: { server: await proxy.listen() } })
    const home = `http://${deployment.zone}:8080/`
    await page.goto(home)
    await expect.poll(() => page.locator('#by').textContent(), patience).toMatch(/answered by cloud (aws|gcp)/)

    for (const name of ['ada', 'bob']) {
      await order(page, 'Open an account', { name })
      await done(page, 'Opening the account')
      await expect.poll(() => page.locator(`#accounts tr[data-account="${name}"]`).count(), patience).toBe(1)
    }
    await order(page, 'Deposit', { to: 'ada', amount_cents: '100' })
    await done(page, 'The deposit')
    await expect.poll(() => balance(page, 'ada'), patience).toBe('100.00')

    const violations = (await new AxeBuilder({ page }).analyze()).violations
    expect(violations.map((v) => `${v.id}: ${v.help}`)).toEqual([])
    expect(errors).toEqual([])

    // Transfers go on while the cloud of the leader is lost and comes back.
    const transfers = 12
    const clouds = new Set<string | null>()
    for (let n = 0; n < transfers; n++) {
      if (n === 3) kill((s) => s.cloud === 'aws')
      await order(page, 'Transfer', { from: 'ada', to: 'bob', amount_cents: '1.00' })
      await expect.poll(() => page.locator('#status').textContent(), patience).not.toBe('')
      await done(page, 'The transfer')
      await expect.poll(() => balance(page, 'bob'), patience).toBe(`${n + 1}.00`)
      clouds.add(await page.locator('#by').getAttribute('data-cloud'))
    }
    expect(clouds).toContain('gcp')
    await expect.poll(() => said.match(/was started again" service=wallet-aws/) !== null, patience).toBe(true)
    await expect.poll(() => proxy.lookup(deployment.zone).then((a) => a.length), patience).toBe(2)

    expect(await balance(page, 'ada')).toBe('88.00')
    await expect.poll(() => page.locator('#sum').textContent(), patience).toContain('nothing lost, nothing made')
    await page.getByRole('button', { name: 'History of bob' }).click()
    await expect.poll(() => page.locator('#entries tr').count(), patience).toBe(transfers)

    // Both clouds' applications say the same, each from what it reads itself.
    for (const wallet of ['wallet-aws', 'wallet-gcp']) {
      const read = async () => {
        const [{ sum }, { accounts }, { entries }] = await Promise.all([get<Sum>(wallet, '/api/sum'),
          get<Accounts>(wallet, '/api/accounts'), get<History>(wallet, '/api/accounts/bob/history')])
        return { holds: sum.holds, total: sum.total_cents, balances: accounts.map((a) => a.balance_cents), transfers: entries.length,
          keys: new Set(entries.map((e) => e.id)).size }
      }
      await expect.poll(() => read().catch((e: unknown) => e), patience).toEqual({ holds: true, total: 10000, balances: [8800, 1200],
        transfers, keys: transfers })
    }
    expect(requests.filter((url) => !url.startsWith(home))).toEqual([])
    await page.context().close()
  })

  test('tells that no cloud answers, and does the order once when one is back', async () => {
    const { page } = await watch(browser, { proxy: { server: `http://127.0.0.1:${(proxy.server.address() as AddressInfo).port}` } })
    await page.goto(`http://${deployment.zone}:8080/`)
    await expect.poll(() => balance(page, 'ada'), patience).toBe('88.00')
    // The balancers of both clouds, by the processes that they are by now.
    for (const name of ['lb-aws', 'lb-gcp']) {
      const found = [...said.matchAll(new RegExp(`started again" service=${name} pid=(\\d+)`, 'g'))].at(-1)
      process.kill(found ? Number(found[1]) : deployment.services.find((s) => s.name === name)!.pid, 'SIGKILL')
    }
    await order(page, 'Transfer', { from: 'ada', to: 'bob', amount_cents: '2.50' })
    await expect.poll(() => page.locator('#status').textContent(), patience).toMatch(/tried again with the same key; it happens once only/)
    expect(await done(page, 'The transfer')).toMatch(/after \d+ attempts and once only/)
    await expect.poll(() => balance(page, 'ada'), patience).toBe('85.50')
    await expect.poll(() => page.locator('#sum').getAttribute('data-holds'), patience).toBe('true')
    await page.context().close()
  })
})
