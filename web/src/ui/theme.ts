// Light and dark themes. The system's preference applies until the reader toggles it.

export interface Theme {
  dark: boolean
  text: string
  muted: string
  line: string
  faint: string
  surface: string
  /** Outcomes, in colours for all kinds of colour vision (after Okabe and Ito). */
  ok: string
  failed: string
  unknown: string
  dropped: string
  /** Event bands behind curves. */
  band: string
  bandLine: string
  /** Seconds with CPU taken from the driver. */
  stolen: string
  /** Series in order. */
  series: string[]
  /** Heat map colours from low to high. */
  heat: string[]
}

const light: Theme = {
  dark: false,
  text: '#1c2530', muted: '#566373', line: '#d8dee6', faint: '#eef1f5', surface: '#ffffff',
  ok: '#1f6fb4', failed: '#c8480f', unknown: '#b3810a', dropped: '#7a8593',
  band: 'rgba(179,129,10,0.11)', bandLine: 'rgba(140,98,0,0.55)', stolen: 'rgba(86,99,115,0.16)',
  series: ['#1f6fb4', '#c8480f', '#0b8a6b', '#9a4f96', '#b3810a', '#2a9bc7', '#6b5fc0', '#7a8593', '#a33a5b', '#5a7d1e'],
  heat: ['#f4f7fb', '#c6dcf0', '#8bbbe0', '#4a92cb', '#1f6fb4', '#0e4a80', '#072a4c'],
}

const dark: Theme = {
  dark: true,
  text: '#e4e9ef', muted: '#9aa7b5', line: '#313b47', faint: '#212932', surface: '#171d24',
  ok: '#5aa9e6', failed: '#f08048', unknown: '#e0b84c', dropped: '#8b97a5',
  band: 'rgba(224,184,76,0.13)', bandLine: 'rgba(224,184,76,0.6)', stolen: 'rgba(154,167,181,0.2)',
  series: ['#5aa9e6', '#f08048', '#3fc0a0', '#cc8ac8', '#e0b84c', '#7fd0ee', '#a79df0', '#8b97a5', '#e07d9c', '#a3c95e'],
  heat: ['#1b232c', '#173a5c', '#1f5a90', '#3b86c4', '#6fb0e4', '#a9d3f5', '#e6f3fd'],
}

const preferred = typeof matchMedia === 'function' ? matchMedia('(prefers-color-scheme: dark)') : undefined
const watchers = new Set<(t: Theme) => void>()
let chosen: 'light' | 'dark' | undefined
let printing = false

/** theme returns the current theme. Printing is always light. */
export function theme(): Theme {
  if (printing) return light
  return (chosen ?? (preferred?.matches ? 'dark' : 'light')) === 'dark' ? dark : light
}

/** onTheme calls f at every change of theme until the returned function is called. */
export function onTheme(f: (t: Theme) => void): () => void {
  watchers.add(f)
  return () => watchers.delete(f)
}

function notifyWatchers(): void {
  document.documentElement.dataset['theme'] = theme().dark ? 'dark' : 'light'
  for (const f of [...watchers]) f(theme())
}

/** toggleTheme changes between light and dark. */
export function toggleTheme(): void {
  chosen = theme().dark ? 'light' : 'dark'
  notifyWatchers()
}

/** startTheme applies the theme, and follows the system and printing. */
export function startTheme(): void {
  notifyWatchers()
  preferred?.addEventListener('change', notifyWatchers)
  addEventListener('beforeprint', () => { printing = true; notifyWatchers() })
  addEventListener('afterprint', () => { printing = false; notifyWatchers() })
}
