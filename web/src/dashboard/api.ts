// What the server answers, as docs/dashboard.md describes it, and how it is asked.

export interface Notes { schema: string; revision: number; changed?: string; note?: string; tags?: string[] }
export interface Entry {
  name: string; experiment?: string; description?: string; state: 'running' | 'finished' | 'interrupted' | 'unreadable'; started?: string; finished?: string
  planned: number; trials: Record<string, number>; databases?: Record<string, string>; goodput_ops_s?: [number, number]; parameters?: Record<string, string[]>
  problem?: string; notes: Notes
}
export type Parameters = Record<string, string | number | boolean>
export interface TrialRow {
  id: number; cell: number; repetition: number; parameters: Parameters; state: string; error?: string; verdict: { state: string; reasons?: string[] }
  goodput_ops_s: number; goodput_ci95_ops_s: number; duration_s: number; p99_us: number; events: number; fired_by_hand?: number
}
export interface CellRow { number: number; parameters: Parameters; ended_ok: number }
export interface Detail extends Entry {
  command: string[] | null; host: { name: string; os: string; kernel: string; cpu: string; cores: number; memory_bytes: number }; engine: { name: string; why: string }
  seed: number; warnings?: string[]; remarks?: string[]; ended: TrialRow[]; cells: CellRow[]
}

export interface Second {
  t: number; length_s: number; ok: number; failed: number; unknown: number; dropped: number; service_p50_us: number; service_p99_us: number
  response_p50_us: number; response_p99_us: number; response_p999_us: number; client_cpu_cores: number; in_flight: number
}
export interface NodeSecond {
  t: number; node: string; cpu_cores: number; throttled_cores: number; memory_bytes: number; read_bytes: number; wrote_bytes: number; rx_bytes: number; tx_bytes: number
}
export interface Moment { ns: number; wall: string }
export interface Step { due: Moment; began?: Moment; accepted?: Moment; completed?: Moment }
export interface LabEvent {
  t: number; kind: string; message: string; id?: number; name?: string; source?: string; targets?: string[]; state?: string; apply?: Step; revert?: Step; error?: string
}
export interface Way { latency_ms: number; jitter_ms?: number; loss?: number; bps?: number; down?: boolean }
export interface Link { id: string; a: string; b: string; ab: Way; ba: Way; rtt_ms?: number; changed?: boolean; carrier_down?: boolean }
export interface Site { name: string; lat: number; lon: number; located: boolean }
export interface LabNode { name: string; site: string; role: string; cpu_cores?: number; memory_bytes?: number }
export interface Cloud { name: string; sites: Site[] | null; nodes: LabNode[] | null; links: Link[] | null }
export interface Trial {
  id: number; number: number; repetition: number; parameters: Parameters | null; database: string; started: string; stage: string; began?: string; limit_s?: number
  measuring: boolean
}
export interface Result { id: number; state: string; error?: string; goodput_ops_s: number; verdict?: string }
export interface State {
  run: { name: string; experiment: string; description?: string; planned: number }
  trial?: Trial; cloud?: Cloud; seconds: Second[]; nodes: NodeSecond[]; network?: { t: number; rtt_mean_ms: number; rtt_worst_ms: number; pairs: number; unreachable: number }
  events: LabEvent[]; results: Result[]
}

export interface Figures { n: number; mean: number; sd: number; ci95?: number; values: number[] }
export interface Metric {
  name: string; unit: string; a: Figures; b: Figures; change?: number; hedges_g?: number; p?: number; p_exact?: boolean; sentence: string
}
export interface Side { run: string; cell: number; parameters: Parameters; trials: number[]; suspect?: boolean }
export interface Comparison { pairs: { a: Side; b: Side; metrics: Metric[] }[] | null; notes?: string[] }

/** Refused is what the server says when it does not do what was asked. */
export class Refused extends Error {
  constructor(readonly status: number, message: string, readonly hint: string) { super(message) }
}

let csrf = ''

async function ask<T>(path: string, init: RequestInit = {}): Promise<T> {
  let answer: Response
  try {
    answer = await fetch(path, { ...init, credentials: 'same-origin', cache: 'no-store' })
  } catch {
    throw new Refused(0, 'The dashboard’s server does not answer.', 'It ends with skerry run --ui; skerry serve shows runs at any time.')
  }
  const body = (await answer.json().catch(() => ({}))) as { error?: string; hint?: string }
  if (answer.status === 401) location.assign('login')
  if (!answer.ok) throw new Refused(answer.status, body.error ?? answer.statusText, body.hint ?? '')
  return body as T
}

/** begin asks for what every change has to show. */
export async function begin(): Promise<{ version: string; runs: string }> {
  const s = await ask<{ version: string; csrf: string; runs: string }>('api/session')
  csrf = s.csrf
  return s
}

async function change<T>(method: string, path: string, body: unknown): Promise<T> {
  const send = () => ask<T>(path, { method, body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', 'X-Skerry-Csrf': csrf } })
  try {
    return await send()
  } catch (e) {
    if (!(e instanceof Refused) || e.status !== 403) throw e
    await begin() // the server was started anew
    return send()
  }
}

const of = (run: string) => `api/runs/${encodeURIComponent(run)}`

export const runs = () => ask<Entry[]>('api/runs')
export const detail = (run: string) => ask<Detail>(of(run))
export const writeNotes = (run: string, n: Notes) => change<Notes>('PUT', `${of(run)}/notes`, n)
export const fire = (run: string, event: object) => change<LabEvent>('POST', `${of(run)}/events`, event)
export const streamOf = (run: string, after: string) => `${of(run)}/live${after ? `?after=${encodeURIComponent(after)}` : ''}`
export const reportOf = (run: string) => `runs/${encodeURIComponent(run)}/report`

/** compare sets two runs side by side; cells are numbers, '' for all that are alike. */
export function compare(a: string, b: string, aCell: string, bCell: string): Promise<Comparison> {
  const q = new URLSearchParams({ a, b })
  if (aCell) q.set('a_cell', aCell)
  if (bCell) q.set('b_cell', bCell)
  return ask<Comparison>(`api/compare?${q}`)
}
