// Requests to the server, as in docs/dashboard.md.
import type { Report } from '../go/compare'
import type { Refusal } from '../go/live'
import type { Event, Notes } from '../go/record'
import type { Experiment, Needs } from '../go/draft'
import type { Detail as TrialDetail } from '../go/webdata'
import type { Checked, Choice, Detail, Entry, Form, Job, Saved, Session, Text as Made } from '../go/serve'

/** Refused is an error response of the server, with a hint. Status 0: no response. */
export class Refused extends Error {
  constructor(readonly status: number, message: string, readonly hint: string) { super(message) }
}

let csrf = ''

async function request<T>(path: string, init: RequestInit = {}): Promise<T> {
  let answer: Response
  try {
    answer = await fetch(path, { ...init, credentials: 'same-origin', cache: 'no-store' })
  } catch {
    throw new Refused(0, 'The dashboard server does not respond.', 'It stops when skerry run --ui ends. Start skerry serve to view runs.')
  }
  const body = (await answer.json().catch(() => ({}))) as Partial<Refusal>
  if (answer.status === 401) location.assign('login')
  if (!answer.ok) throw new Refused(answer.status, body.error ?? answer.statusText, body.hint ?? '')
  return body as T
}

/** startSession reads the CSRF token that every change sends. */
export async function startSession(): Promise<Session> {
  const s = await request<Session>('api/session')
  csrf = s.csrf
  return s
}

async function requestChange<T>(method: string, path: string, body?: unknown): Promise<T> {
  const send = () => request<T>(path,
    { method, body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', 'X-Skerry-Csrf': csrf } })
  try {
    return await send()
  } catch (e) {
    if (!(e instanceof Refused) || e.status !== 403) throw e
    await startSession() // the server has restarted
    return send()
  }
}

const runPath = (run: string) => `api/runs/${encodeURIComponent(run)}`

export const runs = () => request<Entry[]>('api/runs')
export const detail = (run: string) => request<Detail>(runPath(run))
/** trialOf reads the series of a trial. */
export const trialOf = (run: string, trial: number) => request<TrialDetail>(`${runPath(run)}/trials/${trial}`)
export const writeNotes = (run: string, n: Notes) => requestChange<Notes>('PUT', `${runPath(run)}/notes`, n)
export const fire = (run: string, event: object) => requestChange<Event>('POST', `${runPath(run)}/events`, event)
export const streamOf = (run: string, after: string) => `${runPath(run)}/live${after ? `?after=${encodeURIComponent(after)}` : ''}`
export const reportOf = (run: string) => `runs/${encodeURIComponent(run)}/report`

/** compare compares two runs. Cells are numbers, or '' for all matching cells. */
export function compare(a: string, b: string, aCell: string, bCell: string): Promise<Report> {
  const q = new URLSearchParams({ a, b })
  if (aCell) q.set('a_cell', aCell)
  if (bCell) q.set('b_cell', bCell)
  return request<Report>(`api/compare?${q}`)
}

export const form = () => request<Form>('api/form')

export type { Made }
/** draftOf and sketchOf create a file from answers. validateText checks one. All return the mistakes. */
export const draftOf = (d: Experiment) => requestChange<Checked>('POST', 'api/draft', d)
export const sketchOf = (k: Needs) => requestChange<Checked>('POST', 'api/sketch', k)
export const validateText = (t: Made) => requestChange<Checked>('POST', 'api/validate', t)
export const save = (t: Made) => requestChange<Saved>('PUT', 'api/experiment', t)
export const startRun = (t: Made) => requestChange<Saved>('POST', 'api/job', t)
export const choices = () => request<Choice[]>('api/choices')
export const answerOf = (choice: string, page: string) => `choices/${encodeURIComponent(choice)}/${page}`
export const job = () => request<Job>('api/job')
export const interrupt = () => requestChange<Job>('DELETE', 'api/job')
