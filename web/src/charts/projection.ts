// Positions of places in a drawing: by longitude and latitude, or in a circle.
import type { Plan } from './cloud'

export interface Projection {
  width: number
  height: number
  at: [number, number][]
  /** project maps a point of the globe; undefined for places in a circle. */
  project?: (lon: number, lat: number) => [number, number]
}

const margin = 46

/**
 * projectionOf fits the places into a drawing with the given width and maximum height. It uses the plate carrée at the
 * middle latitude of the places. The map starts at the widest gap between their longitudes, so that places on both
 * sides of the Pacific stay together.
 */
export function projectionOf(plan: Plan, width: number, highest = 520): Projection {
  if (!plan.located) return circle(plan, width, highest)
  const lons = plan.places.map((p) => p.lon!).sort((a, b) => a - b)
  let cut = 0
  let gap = lons[0]! + 360 - lons.at(-1)!
  lons.forEach((l, i) => {
    if (i > 0 && l - lons[i - 1]! > gap + 30) {
      gap = l - lons[i - 1]!
      cut = i
    }
  })
  const west = lons[cut]!
  const turn = (lon: number) => (lon < west - 1e-9 ? lon + 360 : lon)
  const xs = plan.places.map((p) => turn(p.lon!))
  const ys = plan.places.map((p) => p.lat!)
  let [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)]
  const middle = (y0 + y1) / 2
  const squeeze = Math.max(0.35, Math.cos((middle * Math.PI) / 180))
  const widen = (lo: number, hi: number, least: number): [number, number] => {
    const more = Math.max(0, least - (hi - lo)) / 2
    return [lo - more, hi + more]
  }
  ;[x0, x1] = widen(x0, x1, Math.max(4, (y1 - y0) * 1.2))
  ;[y0, y1] = widen(y0, y1, (x1 - x0) * squeeze * 0.36)
  const k = (width - 2 * margin) / ((x1 - x0) * squeeze)
  const height = Math.min(highest, (y1 - y0) * k + 2 * margin)
  const scale = Math.min(k, (height - 2 * margin) / (y1 - y0))
  const left = (width - (x1 - x0) * squeeze * scale) / 2
  const place = (lon: number, lat: number): [number, number] => [left + (lon - x0) * squeeze * scale, margin + (y1 - lat) * scale]
  return {
    width, height,
    at: plan.places.map((p) => place(turn(p.lon!), p.lat!)),
    project: place,
  }
}

function circle(plan: Plan, width: number, highest: number): Projection {
  const n = Math.max(1, plan.places.length)
  const height = Math.min(highest, Math.max(240, 170 + 12 * n))
  const rx = Math.min(width / 2 - 130, height * 0.85)
  const ry = height / 2 - 44
  return {
    width, height,
    at: plan.places.map((_, i) => {
      const a = (2 * Math.PI * i) / n - Math.PI / 2
      return [width / 2 + rx * Math.cos(a), height / 2 + ry * Math.sin(a)]
    }),
  }
}
