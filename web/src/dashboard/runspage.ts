// The list of runs: searched, tagged, two of them chosen to be compared.
import { figure } from '../format/format'
import { h, replace } from '../ui/dom'
import { reportOf, runs, type Entry } from './api'
import { ago, badge, compareAddress, liveAddress, runAddress, trouble, type Page } from './pages'

const lookEvery = 3000

/** matches tells whether a run has every word of a search, in its name, notes, tags or parameters; tag:WORD asks for a tag. */
export function matches(e: Entry, search: string): boolean {
  const text = [e.name, e.experiment, e.description, e.state, e.notes.note, ...(e.notes.tags ?? []), ...Object.entries(e.databases ?? {}).flat(),
    ...Object.entries(e.parameters ?? {}).flatMap(([k, v]) => v.map((x) => `${k}=${x}`)), ...Object.keys(e.trials)].join('\n').toLowerCase()
  return search.toLowerCase().split(/\s+/).filter(Boolean).every((word) =>
    word.startsWith('tag:') ? (e.notes.tags ?? []).some((t) => t.toLowerCase() === word.slice(4)) : text.includes(word))
}

/** state is how a run stands, in a badge. */
export function state(e: Entry): HTMLElement {
  return badge(e.state, ({ running: 'good', finished: '', interrupted: 'warn', unreadable: 'bad' } as const)[e.state])
}

/** tally says how trials ended. */
export function tally(e: Entry): HTMLElement {
  const ended = Object.values(e.trials).reduce((a, b) => a + b, 0)
  const kinds = (['valid', 'suspect', 'failed', 'interrupted'] as const).filter((k) => e.trials[k])
  return h('span', {}, `${ended}/${e.planned} `, kinds.map((k) => h('span', { class: `count ${k}` }, `${e.trials[k]} ${k} `)))
}

/** runsPage lists the runs of the folder, anew every few seconds. */
export function runsPage(): Page {
  let list: Entry[] | undefined
  let before = ''
  let timer: ReturnType<typeof setTimeout> | undefined
  let closed = false
  const chosen: string[] = []
  const search = h('input', { type: 'search', placeholder: 'Search names, notes, parameters, tag:word', 'aria-label': 'Search runs', oninput: () => draw() })
  const tags = h('div', { class: 'tags', role: 'group', 'aria-label': 'Tags' })
  const compare = h('button', { type: 'button', onclick: () => { location.hash = compareAddress(chosen[0] ?? '', chosen[1] ?? '') } }, 'Compare')
  const count = h('span', { class: 'muted', role: 'status' })
  const rows = h('div')
  const element = h('div', { class: 'page' }, h('h1', {}, 'Runs'), h('div', { class: 'controls' }, search, compare, count), tags, rows)

  async function look(): Promise<void> {
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
      replace(rows, trouble(e))
    }
    timer = setTimeout(() => void look(), document.visibilityState === 'visible' ? lookEvery : 10 * lookEvery)
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
    const found = list.filter((e) => matches(e, search.value))
    const known = [...new Set(list.flatMap((e) => e.notes.tags ?? []))].sort((a, b) => a.localeCompare(b))
    replace(tags, known.map((t) => {
      const word = `tag:${t}`
      const on = search.value.split(/\s+/).includes(word)
      return h('button', { type: 'button', class: 'tag', 'aria-pressed': String(on), 'data-key': word, onclick: () => {
        search.value = on ? search.value.split(/\s+/).filter((w) => w !== word).join(' ') : `${search.value} ${word}`.trim()
        draw()
      } }, t)
    }))
    compare.disabled = chosen.length !== 2
    compare.title = chosen.length === 2 ? '' : 'Choose two runs'
    count.textContent = found.length === list.length ? `${list.length} runs` : `${found.length} of ${list.length} runs`
    replace(rows, list.length === 0 ? h('section', { class: 'card waiting' }, h('h2', {}, 'No runs yet'), h('p', {}, 'The first one appears here by itself. Start it in a terminal:'), h('pre', {}, 'skerry run experiments/quickstart.yaml'))
      : h('div', { class: 'card wide' }, h('table', { class: 'runs' },
        h('caption', { class: 'visually-hidden' }, 'Runs, the newest first'),
        h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, h('span', { class: 'visually-hidden' }, 'Compare')), ['Run', 'State', 'Started', 'Trials', 'Goodput, ops/s', 'Notes', ''].map((c, i) => h('th', { scope: 'col', class: i === 4 ? 'num' : '' }, c || h('span', { class: 'visually-hidden' }, 'Open'))))),
        h('tbody', {}, found.map(row)))))
    if (focus) for (const e of element.querySelectorAll<HTMLElement>('[data-key]')) if (e.dataset['key'] === focus) e.focus()
  }

  function row(e: Entry): HTMLElement {
    const box = h('input', { type: 'checkbox', 'aria-label': `Choose ${e.name} to compare`, 'data-key': `choose ${e.name}`, onchange: () => choose(e.name, box.checked) })
    box.checked = chosen.includes(e.name)
    box.disabled = e.state === 'unreadable'
    const g = e.goodput_ops_s
    return h('tr', {}, h('td', {}, box),
      h('th', { scope: 'row' }, h('a', { href: runAddress(e.name), 'data-key': `run ${e.name}` }, e.experiment || e.name), h('span', { class: 'directory muted' }, e.experiment ? e.name : ''), e.problem ? h('span', { class: 'problem' }, e.problem) : null),
      h('td', {}, state(e)), h('td', {}, ago(e.started)), h('td', {}, e.state === 'unreadable' ? '–' : tally(e)),
      h('td', { class: 'num' }, !g ? '–' : g[0] === g[1] ? figure(g[0]) : `${figure(g[0])} – ${figure(g[1])}`),
      h('td', {}, (e.notes.tags ?? []).map((t) => h('span', { class: 'tag' }, t)), h('span', { class: 'excerpt' }, (e.notes.note ?? '').split('\n')[0] ?? '')),
      h('td', { class: 'open' }, e.state === 'running' ? h('a', { href: liveAddress(e.name) }, 'Live') : null, e.state === 'unreadable' ? null : h('a', { href: reportOf(e.name), target: '_blank', rel: 'noopener' }, 'Report')))
  }

  void look()
  return { title: 'Runs', element, close() { closed = true; clearTimeout(timer) } }
}
