import { expect, test } from 'vitest'
import { table } from './table'

const rows = Array.from({ length: 30 }, (_, i) => ({ name: `node-${i}`, value: (i * 7) % 30 }))
const make = () => table([
  { head: 'name', cell: (r: (typeof rows)[number]) => r.name },
  { head: 'value', numeric: true, key: (r: (typeof rows)[number]) => r.value, cell: (r: (typeof rows)[number]) => r.value },
], rows, { label: 'nodes', most: 25 })
const names = (e: HTMLElement) => [...e.querySelectorAll('tbody td:first-child')].map((x) => x.textContent)

test('heads sort, up and down, and say so', () => {
  const e = make()
  const value = e.querySelectorAll<HTMLButtonElement>('th button')[1]!
  value.click()
  expect(names(e)[0]).toBe(rows.find((r) => r.value === 29)?.name)
  expect(e.querySelectorAll('th')[1]?.getAttribute('aria-sort')).toBe('descending')
  value.click()
  expect(names(e)[0]).toBe('node-0')
  e.querySelector<HTMLButtonElement>('th button')!.click()
  expect(names(e).slice(0, 3)).toEqual(['node-0', 'node-1', 'node-2'])
})

test('a long table shows a part, and a search finds the rest', () => {
  const e = make()
  expect(names(e)).toHaveLength(25)
  expect(e.querySelector('[role=status]')?.textContent).toContain('25 of 30')
  const field = e.querySelector('input')!
  field.value = 'NODE-29'
  field.dispatchEvent(new Event('input'))
  expect(names(e)).toEqual(['node-29'])
})
