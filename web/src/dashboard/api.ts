// How the server is asked, as docs/dashboard.md describes it.
import type { Report } from '../go/compare'
import type { Refusal } from '../go/live'
import type { Event, Notes } from '../go/record'
import type { Experiment, Needs } from '../go/draft'
import type { Detail as TrialDetail } from '../go/webdata'
import type { Checked, Choice, Detail, Entry, Form, Job, Saved, Session, Text as Made } from '../go/serve'

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
  const body = (await answer.json().catch(() => ({}))) as Partial<Refusal>
  if (answer.status === 401) location.assign('login')
  if (!answer.ok) throw new Refused(answer.status, body.error ?? answer.statusText, body.hint ?? '')
  return body as T
}

/** begin asks for what every change has to show. */
export async function begin(): Promise<Session> {
  const s = await ask<Session>('api/session')
  csrf = s.csrf
  return s
}

async function change<T>(method: string, path: string, body?: unknown): Promise<T> {
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
/** trialOf are the series of a trial that measured. */
export const trialOf = (run: string, trial: number) => ask<TrialDetail>(`${of(run)}/trials/${trial}`)
export const writeNotes = (run: string, n: Notes) => change<Notes>('PUT', `${of(run)}/notes`, n)
export const fire = (run: string, event: object) => change<Event>('POST', `${of(run)}/events`, event)
export const streamOf = (run: string, after: string) => `${of(run)}/live${after ? `?after=${encodeURIComponent(after)}` : ''}`
export const reportOf = (run: string) => `runs/${encodeURIComponent(run)}/report`

/** compare sets two runs side by side; cells are numbers, '' for all that are alike. */
export function compare(a: string, b: string, aCell: string, bCell: string): Promise<Report> {
  const q = new URLSearchParams({ a, b })
  if (aCell) q.set('a_cell', aCell)
  if (bCell) q.set('b_cell', bCell)
  return ask<Report>(`api/compare?${q}`)
}

export const form = () => ask<Form>('api/form')

export type { Made }
/** draftOf and sketchOf make the file of answers, validateText checks one; all say what is wrong. */
export const draftOf = (d: Experiment) => change<Checked>('POST', 'api/draft', d)
export const sketchOf = (k: Needs) => change<Checked>('POST', 'api/sketch', k)
export const validateText = (t: Made) => change<Checked>('POST', 'api/validate', t)
export const save = (t: Made) => change<Saved>('PUT', 'api/experiment', t)
export const startRun = (t: Made) => change<Saved>('POST', 'api/job', t)
export const choices = () => ask<Choice[]>('api/choices')
export const answerOf = (choice: string, page: string) => `choices/${encodeURIComponent(choice)}/${page}`
export const job = () => ask<Job>('api/job')
export const interrupt = () => change<Job>('DELETE', 'api/job')
