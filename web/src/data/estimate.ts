// Estimates as multiples of another: the same arithmetic as internal/evidence/stats has.
import type { Estimate } from '../go/webdata'

/** ratio estimates a / b by the delta method; its interval needs one of a and of b. */
export function ratio(a: Estimate, b: Estimate): Estimate | undefined {
  if (!b.mean) return undefined
  const mean = a.mean / b.mean
  const n = Math.min(a.n, b.n)
  if (a === b) return { n, mean: 1 }
  if (n < 2 || !a.mean) return { n: Math.min(n, 1), mean }
  const va = ((a.sd ?? 0) / a.mean) ** 2 / a.n
  const vb = ((b.sd ?? 0) / b.mean) ** 2 / b.n
  if (va + vb === 0) return { n, mean }
  const df = (va + vb) ** 2 / (va ** 2 / (a.n - 1) + vb ** 2 / (b.n - 1))
  return { n, mean, half: tQuantile(df) * Math.abs(mean) * Math.sqrt(va + vb) }
}

/**
 * tQuantile is the 97.5 % quantile of Student's t distribution: the normal quantile with the
 * correction of Cornish and Fisher (Abramowitz and Stegun 26.7.5), within 0.1 % from 3 degrees
 * of freedom; below, between the exact values of 1, 2 and 3.
 */
export function tQuantile(df: number): number {
  const exact = [12.7062, 4.30265, 3.18245]
  if (df <= 1) return exact[0]!
  if (df < 3) {
    const i = Math.floor(df)
    // The quantile is near to linear in 1/df.
    const x = (1 / df - 1 / i) / (1 / (i + 1) - 1 / i)
    return exact[i - 1]! + x * (exact[i]! - exact[i - 1]!)
  }
  const z = 1.959964
  const g1 = (z ** 3 + z) / 4
  const g2 = (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96
  const g3 = (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384
  const g4 = (79 * z ** 9 + 776 * z ** 7 + 1482 * z ** 5 - 1920 * z ** 3 - 945 * z) / 92160
  return z + g1 / df + g2 / df ** 2 + g3 / df ** 3 + g4 / df ** 4
}
