// Elements and formats that all pages share.
import { Refused } from './api'
import { h } from '../ui/dom'

/** Page is a view of the dashboard. close is called before the next one opens. */
export interface Page {
  title: string
  element: HTMLElement
  close(): void
}

/** badge is a coloured word. */
export function badge(text: string, kind: '' | 'good' | 'bad' | 'warn' = ''): HTMLElement {
  return h('span', { class: `badge ${kind}`.trim() }, text)
}

/** errorMessage shows an error with its hint. */
export function errorMessage(e: unknown): HTMLElement {
  const message = e instanceof Error ? e.message : String(e)
  return h('p', { class: 'note bad', role: 'alert' }, sentence(message), e instanceof Refused && e.hint ? ` ${sentence(e.hint)}` : null)
}

function sentence(text: string): string {
  const s = text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?]$/.test(s) ? s : `${s}.`
}

/** ago formats a time relative to now; its title has the exact time. */
export function ago(time: string | undefined, now = Date.now()): HTMLElement {
  const at = time ? Date.parse(time) : NaN
  if (!Number.isFinite(at)) return h('span', { class: 'muted' }, '–')
  const s = Math.max(0, (now - at) / 1000)
  const text = s < 90 ? 'just now' : s < 5400 ? `${Math.round(s / 60)} min ago` : s < 129_600 ? `${Math.round(s / 3600)} h ago`
    : s < 30 * 86_400 ? `${Math.round(s / 86_400)} days ago` : new Date(at).toLocaleDateString()
  return h('time', { datetime: time ?? '', title: new Date(at).toLocaleString() }, text)
}

/** took formats a duration in seconds. */
export function took(s: number): string {
  if (!Number.isFinite(s)) return '–'
  const whole = Math.round(s)
  if (whole < 60) return `${whole} s`
  return whole < 3600 ? `${Math.floor(whole / 60)} min${whole % 60 ? ` ${whole % 60} s` : ''}`
    : `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
}

export const runAddress = (name: string) => `#/run/${encodeURIComponent(name)}`
export const liveAddress = (name: string) => `#/live/${encodeURIComponent(name)}`
export const compareAddress = (a: string, b: string) => `#/compare/${encodeURIComponent(a)}/${encodeURIComponent(b)}`
