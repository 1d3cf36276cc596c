import '../ui/base.css'
import { startTheme } from '../ui/theme'

startTheme()
