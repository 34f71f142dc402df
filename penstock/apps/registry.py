"""The applications by name, and where their flow is made."""

APPS = {
    "livestream": "penstock.apps.livestream:flow",
    "primetest": "penstock.apps.primetest:flow",
    "twitter": "penstock.apps.twitter:flow",
    "wordcount": "penstock.apps.wordcount:flow",
}
