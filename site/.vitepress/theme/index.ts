// VitePress's own theme in the colours of report and dashboard.
import theme from 'vitepress/theme'
import './colours.css'

export default theme
