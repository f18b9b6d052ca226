Feature: Returns
  Readers may send books back within 30 days.

  Scenario: A book comes back in time
    Given an order from 29 days ago
    When the book arrives in the warehouse
    Then the price is paid back

  Scenario: A book comes back late
    Given an order from 31 days ago
    When the book arrives in the warehouse
    Then the reader is asked to pick it up again
