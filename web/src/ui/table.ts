// Sortable tables. Long tables are searchable.
import { h, replace } from './dom'

export interface Column<T> {
  head: string
  /** cell is the content; key is the sort key, by default the text of the cell. */
  cell(row: T): Node | string | number | null
  key?(row: T): number | string
  numeric?: boolean
  class?: string
}

export interface TableOptions<T> {
  label: string
  bad?(row: T): boolean
  /** most is the maximum number of visible rows. */
  most?: number
}

const searchable = 20

/** table creates a table with sortable columns and a search field. */
export function table<T>(columns: Column<T>[], rows: T[], o: TableOptions<T>): HTMLElement {
  const most = o.most ?? 200
  let by = -1
  let down = false
  let query = ''
  const texts = new Map<T, string>()
  const text = (row: T) => {
    let s = texts.get(row)
    if (s === undefined) {
      s = columns.map((c) => plainText(c.cell(row))).join(' ').toLowerCase()
      texts.set(row, s)
    }
    return s
  }
  const body = h('tbody')
  const rest = h('p', { class: 'muted', role: 'status' })
  const heads = columns.map((c, i) => h('th', { scope: 'col', class: c.numeric ? 'num' : '' },
    rows.length > 1 ? h('button', { type: 'button', class: 'sort', onclick: () => sort(i) }, c.head) : c.head))

  function sort(i: number): void {
    down = by === i ? !down : columns[i]?.numeric === true
    by = i
    heads.forEach((e, k) => {
      if (k === by) e.setAttribute('aria-sort', down ? 'descending' : 'ascending')
      else e.removeAttribute('aria-sort')
    })
    fill()
  }

  function fill(): void {
    let shown = query ? rows.filter((r) => text(r).includes(query)) : [...rows]
    const c = columns[by]
    if (c) {
      const key = c.key ?? ((r: T) => plainText(c.cell(r)))
      shown = shown.sort((a, b) => compare(key(a), key(b)) * (down ? -1 : 1))
    }
    replace(body, shown.slice(0, most).map((r) => h('tr', { class: o.bad?.(r) ? 'bad' : '' },
      columns.map((x) => h('td', { class: [x.numeric ? 'num' : '', x.class ?? ''].join(' ').trim() }, x.cell(r))))))
    rest.textContent = shown.length > most ? `${most} of ${shown.length} rows are shown; search or sort to see others.` : ''
  }

  fill()
  return h('div', {},
    rows.length > searchable ? h('div', { class: 'controls' }, h('label', { class: 'field' }, 'Search', h('input', {
      type: 'search', 'aria-label': `Search ${o.label}`, oninput: (e: Event) => {
        query = (e.target as HTMLInputElement).value.toLowerCase()
        fill()
      } }))) : null,
    wide(o.label, h('table', {}, h('thead', {}, h('tr', {}, heads)), body)), rest)
}

/** wide is a scrollable container for a wide table, with keyboard focus. */
export function wide(label: string, content: HTMLElement): HTMLElement {
  return h('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': label }, content)
}

function plainText(v: Node | string | number | null): string {
  return v instanceof Node ? v.textContent ?? '' : String(v ?? '')
}

function compare(a: number | string, b: number | string): number {
  if (typeof a === 'number' && typeof b === 'number') return (Number.isNaN(a) ? -Infinity : a) - (Number.isNaN(b) ? -Infinity : b)
  return String(a).localeCompare(String(b), 'en', { numeric: true })
}
