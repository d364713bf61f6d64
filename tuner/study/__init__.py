"""The study: objective, suggestions, store and builds of one tuning run; the only room that knows Optuna and SQLAlchemy."""
