// The dashboard: one page; the fragment of its address selects the view.
import '../ui/base.css'
import './dashboard.css'
import { h, replace } from '../ui/dom'
import { onTheme, startTheme, theme, toggleTheme } from '../ui/theme'
import { runs, startSession } from './api'
import { choosePage } from './choosepage'
import { comparePage } from './comparepage'
import { livePage } from './livepage'
import { newPage } from './newpage'
import { liveAddress, errorMessage, type Page } from './pages'
import { runPage } from './runpage'
import { runsPage } from './runspage'

startTheme()
const main = h('main', { id: 'main', tabindex: -1 })
const where = [['#/live', 'Live'], ['#/runs', 'Runs'], ['#/new', 'New'], ['#/choose', 'Choose']] as const
const links = where.map(([to, name]) => h('a', { href: to }, name))
const dark = h('button', { type: 'button', class: 'quiet', onclick: toggleTheme })
const label = () => { dark.textContent = theme().dark ? 'Light' : 'Dark' }
onTheme(label)
label()
replace(document.getElementById('app')!,
  h('a', { class: 'skip', href: '#main', onclick: (e: Event) => { e.preventDefault(); main.focus() } }, 'Skip to content'),
  h('header', { class: 'bar' }, h('a', { class: 'brand', href: '#/runs' }, mark(), 'Skerry'), h('nav', { 'aria-label': 'Pages' }, links),
    dark), main)

let page: Page | undefined

function pageOf(address: string): Page {
  const [kind, ...rest] = address.replace(/^#\/?/, '').split('/').map(decode)
  if (kind === 'new') return newPage()
  if (kind === 'choose') return choosePage()
  if (kind === 'live') return livePage(rest[0] ?? '')
  if (kind === 'run' && rest[0]) return runPage(rest[0])
  if (kind === 'compare') return comparePage(rest[0] ?? '', rest[1] ?? '')
  return runsPage()
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function show(): void {
  page?.close()
  page = pageOf(location.hash)
  document.title = `${page.title} – Skerry`
  replace(main, page.element)
  scrollTo(0, 0)
  where.forEach(([to], i) => {
    if (location.hash.startsWith(to)
      || (to === '#/runs' && !/^#\/(live|new|choose)/.test(location.hash))) links[i]!.setAttribute('aria-current', 'page')
    else links[i]!.removeAttribute('aria-current')
  })
}

function mark(): SVGElement {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
  svg.setAttribute('viewBox', '0 0 24 24')
  svg.setAttribute('aria-hidden', 'true')
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path')
  path.setAttribute('d', 'M3 15.5 8 7l3.2 5L14 8.5l7 7' +
    'M2 19.5c2.2 0 2.2-1.4 4.4-1.4s2.2 1.4 4.4 1.4 2.2-1.4 4.4-1.4 2.2 1.4 4.4 1.4c1 0 1.6-.3 2.4-.7')
  svg.append(path)
  return svg
}

addEventListener('hashchange', show)
/** home opens the running run, if the address has no fragment. */
async function home(): Promise<void> {
  if (location.hash.replace(/^#\/?/, '')) return
  const running = (await runs().catch(() => [])).find((r) => r.state === 'running')
  if (running) history.replaceState(null, '', liveAddress(running.name))
}

startSession().then(home).then(show, (e: unknown) => replace(main, errorMessage(e)))
