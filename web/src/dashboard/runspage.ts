// The list of runs, with search, sorting, tags and selection for a comparison.
import { figure, plural } from '../format/format'
import { h, replace } from '../ui/dom'
import type { Entry } from '../go/serve'
import { reportOf, runs } from './api'
import { ago, compareAddress, liveAddress, runAddress, took, errorMessage, type Page } from './pages'
import { ended, verdicts, weight } from './verdict'

const pollInterval = 3000

/** matches returns true if a run has every word of a search in its name, notes, tags or parameters. tag:WORD matches a tag. */
export function matches(e: Entry, search: string): boolean {
  const text = [e.name, e.experiment, e.description, e.state, e.notes.note, ...(e.notes.tags ?? []),
    ...Object.entries(e.databases ?? {}).flat(),
    ...Object.entries(e.parameters ?? {}).flatMap(([k, v]) => v.map((x) => `${k}=${x}`)), ...Object.keys(e.trials)].join('\n').toLowerCase()
  return search.toLowerCase().split(/\s+/).filter(Boolean).every((word) =>
    word.startsWith('tag:') ? (e.notes.tags ?? []).some((t) => t.toLowerCase() === word.slice(4)) : text.includes(word))
}

/** tally counts trials by outcome. */
export function tally(e: Entry): HTMLElement {
  const kinds = (['valid', 'suspect', 'failed', 'interrupted'] as const).filter((k) => e.trials[k])
  return h('span', {}, `${ended(e)}/${e.planned} `, kinds.map((k) => h('span', { class: `count ${k}` }, `${e.trials[k]} ${k} `)))
}

/** olderFirst sorts two runs by time: the older is A, the newer B. */
export function olderFirst(a: Entry, b: Entry): [Entry, Entry] {
  return Date.parse(a.started ?? '') > Date.parse(b.started ?? '') ? [b, a] : [a, b]
}

const seconds = (e: Entry): number => (e.finished && e.started ? (Date.parse(e.finished) - Date.parse(e.started)) / 1000 : NaN)

/** databases lists names with versions. */
const databases = (e: Entry): string => Object.entries(e.databases ?? {}).map(([k, v]) => `${k} ${v}`).join(', ')

/** varied shows the parameters of a run with their values. */
function varied(e: Entry): HTMLElement[] {
  return Object.entries(e.parameters ?? {}).filter(([k]) => k !== 'database').sort(([a], [b]) => a.localeCompare(b)).map(([k, v]) =>
    h('span', { class: 'parameter', title: `${k}: ${v.join(', ')}` }, h('span', { class: 'muted' }, `${k} `), inOrder(v)))
}

/** inOrder lists sorted values; of more than four the first and the last. */
function inOrder(values: string[]): string {
  const all = [...values].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
  return all.length > 4 ? `${all[0]} … ${all.at(-1)}` : all.join(', ')
}

interface Column {
  head: string
  cell(e: Entry): (Node | string | null)[] | Node | string
  /** key is the sort key. A column without one is not sortable. */
  key?(e: Entry): number | string
  numeric?: boolean
}

const columns: Column[] = [
  { head: 'Verdict', key: (e) => -weight(e), cell: (e) => verdicts(e) },
  { head: 'Database', key: databases, cell: (e) => databases(e) || '–' },
  { head: 'Parameters', cell: (e) => h('div', { class: 'tiles' }, varied(e)) },
  { head: 'Trials', key: (e) => e.planned, cell: (e) => (e.state === 'unreadable' ? '–' : tally(e)) },
  { head: 'Goodput, ops/s', numeric: true, key: (e) => e.goodput_ops_s?.[1] ?? NaN, cell: (e) => {
    const g = e.goodput_ops_s
    return !g ? '–' : g[0] === g[1] ? figure(g[0]) : `${figure(g[0])} – ${figure(g[1])}`
  } },
  { head: 'Took', numeric: true, key: seconds, cell: (e) => took(seconds(e)) },
  { head: 'Started', key: (e) => Date.parse(e.started ?? ''), cell: (e) => ago(e.started) },
  { head: 'Notes', cell: (e) => [...(e.notes.tags ?? []).map((t) => h('span', { class: 'tag' }, t)),
    h('span', { class: 'excerpt' }, (e.notes.note ?? '').split('\n')[0] ?? '')] },
]
const name: Column = { head: 'Run', key: (e) => (e.experiment ?? e.name).toLowerCase(), cell: (e) => e.name }

/** sorted sorts runs by a column. Runs without a value come last. */
export function sorted(list: Entry[], by: Pick<Column, 'key'>, down: boolean): Entry[] {
  const none = (k: number | string) => typeof k === 'number' && Number.isNaN(k)
  return [...list].sort((x, y) => {
    const [a, b] = [by.key!(x), by.key!(y)]
    if (none(a) || none(b)) return Number(none(a)) - Number(none(b))
    const order = typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b), 'en', { numeric: true })
    return down ? -order : order
  })
}

/** runsPage lists the runs of the folder and refreshes every few seconds. */
export function runsPage(): Page {
  let list: Entry[] | undefined
  let before = ''
  let timer: ReturnType<typeof setTimeout> | undefined
  let closed = false
  let by = columns.find((c) => c.head === 'Started')!
  let down = true
  const chosen: string[] = []
  const search = h('input', { type: 'search', placeholder: 'Search names, notes, parameters, tag:word', 'aria-label': 'Search runs',
    oninput: () => draw() })
  const tags = h('div', { class: 'tags', role: 'group', 'aria-label': 'Tags' })
  const compare = h('button', { type: 'button', onclick: () => {
    const [a, b] = chosen.map((n) => list!.find((e) => e.name === n)!)
    const [older, newer] = olderFirst(a!, b!)
    location.hash = compareAddress(older.name, newer.name)
  } }, 'Compare')
  const count = h('span', { class: 'muted', role: 'status' })
  const rows = h('div')
  const element = h('div', { class: 'page' }, h('h1', {}, 'Runs'), h('div', { class: 'controls' }, search, compare, count), tags, rows)

  async function refresh(): Promise<void> {
    clearTimeout(timer)
    try {
      const next = await runs()
      const text = JSON.stringify(next)
      if (closed) return
      list = next
      if (text !== before) draw()
      before = text
    } catch (e) {
      if (closed) return
      before = ''
      replace(rows, errorMessage(e))
    }
    timer = setTimeout(() => void refresh(), document.visibilityState === 'visible' ? pollInterval : 10 * pollInterval)
  }

  function choose(name: string, on: boolean): void {
    const at = chosen.indexOf(name)
    if (at >= 0) chosen.splice(at, 1)
    if (on) chosen.push(name)
    if (chosen.length > 2) chosen.shift()
    draw()
  }

  function draw(): void {
    if (!list) return
    const focus = document.activeElement instanceof HTMLElement ? document.activeElement.dataset['key'] : undefined
    const found = sorted(list.filter((e) => matches(e, search.value)), by, down)
    drawTags()
    compare.disabled = chosen.length !== 2
    compare.title = chosen.length === 2 ? 'The older run is A, the newer B' : 'Choose two runs'
    count.textContent = found.length === list.length ? plural(list.length, 'run') : `${found.length} of ${plural(list.length, 'run')}`
    replace(rows, list.length === 0 ? h('section', { class: 'card waiting' }, h('h2', {}, 'No runs yet'),
      h('p', {}, 'Create an experiment with the ', h('a', { href: '#/new' }, 'form'), ', or start one in a terminal:'),
      h('pre', {}, 'skerry run experiments/quickstart.yaml'))
      : h('div', { class: 'card wide' }, h('table', { class: 'runs' },
        h('caption', { class: 'visually-hidden' }, 'Runs'),
        h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, h('span', { class: 'visually-hidden' }, 'Compare')),
          [name, ...columns].map(head), h('th', { scope: 'col' }, h('span', { class: 'visually-hidden' }, 'Open')))),
        h('tbody', {}, found.map(row)))))
    if (focus) for (const e of element.querySelectorAll<HTMLElement>('[data-key]')) if (e.dataset['key'] === focus) e.focus()
  }

  function drawTags(): void {
    const known = [...new Set(list!.flatMap((e) => e.notes.tags ?? []))].sort((a, b) => a.localeCompare(b))
    replace(tags, known.map((t) => {
      const word = `tag:${t}`
      const on = search.value.split(/\s+/).includes(word)
      return h('button', { type: 'button', class: 'tag', 'aria-pressed': String(on), 'data-key': word, onclick: () => {
        search.value = on ? search.value.split(/\s+/).filter((w) => w !== word).join(' ') : `${search.value} ${word}`.trim()
        draw()
      } }, t)
    }))
  }

  function head(c: Column): HTMLElement {
    const order = c === by ? (down ? 'descending' : 'ascending') : null
    return h('th', { scope: 'col', class: c.numeric ? 'num' : '', 'aria-sort': order },
      c.key ? h('button', { type: 'button', class: 'sort', 'data-key': `sort ${c.head}`, onclick: () => {
      down = c === by ? !down : c.numeric === true || c.head === 'Started'
      by = c
      draw()
    } }, c.head) : c.head)
  }

  function row(e: Entry): HTMLElement {
    const box = h('input', { type: 'checkbox', 'aria-label': `Choose ${e.name} to compare`, 'data-key': `choose ${e.name}`,
      onchange: () => choose(e.name, box.checked) })
    box.checked = chosen.includes(e.name)
    box.disabled = e.state === 'unreadable'
    return h('tr', {}, h('td', { class: 'choose' }, box),
      h('th', { scope: 'row' }, h('a', { href: runAddress(e.name), 'data-key': `run ${e.name}` }, e.experiment || e.name),
        h('span', { class: 'directory muted' }, e.experiment ? e.name : ''), e.problem ? h('span', { class: 'problem' }, e.problem) : null),
      columns.map((c) => h('td', { class: c.numeric ? 'num' : '', 'data-label': c.head }, h('div', {}, c.cell(e)))),
      h('td', { class: 'open' }, e.state === 'running' ? h('a', { href: liveAddress(e.name) }, 'Live') : null,
        e.state === 'unreadable' ? null : h('a', { href: reportOf(e.name), target: '_blank', rel: 'noopener' }, 'Report')))
  }

  void refresh()
  return { title: 'Runs', element, close() { closed = true; clearTimeout(timer) } }
}
